#pragma once

/// JSON Schemas that the plugin announces. Times are in nanoseconds and -1 is no limit, as in the JetStream API;
/// servers of other versions give more properties than are named here.
namespace muster::nats {

inline constexpr char kConfigSchema[] = R"({
  "type": "object",
  "properties": {
    "url": {"type": "string", "minLength": 1,
            "description": "nats://[user:password@|token@]host:port[,...] or tls://...; the worker's own bus unless given"},
    "creds": {"type": "string", "minLength": 1, "description": "Path of a credentials file"},
    "nkey_seed": {"type": "string", "minLength": 1, "description": "Path of a file with an NKey seed"},
    "tls": {
      "type": "object",
      "properties": {
        "ca": {"type": "string", "minLength": 1, "description": "Path of the authority's certificate, PEM"},
        "cert": {"type": "string", "minLength": 1, "description": "Path of the client's certificate, PEM"},
        "key": {"type": "string", "minLength": 1, "description": "Path of its key, PEM"}
      },
      "dependentRequired": {"cert": ["key"], "key": ["cert"]},
      "additionalProperties": false
    },
    "domain": {"type": "string", "pattern": "^[^.*>\\s]+$", "description": "JetStream domain"}
  },
  "not": {"required": ["creds", "nkey_seed"]},
  "additionalProperties": false
})";

inline constexpr char kStreamSchema[] = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "pattern": "^[^.*>\\s]{1,255}$", "x-muster-create-only": true},
    "description": {"type": "string"},
    "subjects": {"type": "array", "items": {"type": "string"}, "x-muster-unordered": true},
    "retention": {"enum": ["limits", "interest", "workqueue"], "default": "limits"},
    "storage": {"enum": ["file", "memory"], "default": "file", "x-muster-create-only": true},
    "discard": {"enum": ["old", "new"], "default": "old"},
    "max_consumers": {"type": "integer"},
    "max_msgs": {"type": "integer"},
    "max_msgs_per_subject": {"type": "integer"},
    "max_bytes": {"type": "integer"},
    "max_age": {"type": "integer", "minimum": 0},
    "max_msg_size": {"type": "integer"},
    "num_replicas": {"type": "integer", "minimum": 1, "maximum": 5},
    "duplicate_window": {"type": "integer", "minimum": 0},
    "mirror": {"type": "object"},
    "sources": {"type": "array", "items": {"type": "object"}},
    "metadata": {"type": "object", "additionalProperties": {"type": "string"}}
  },
  "required": ["name"]
})";

inline constexpr char kConsumerSchema[] = R"({
  "type": "object",
  "properties": {
    "stream": {"type": "string", "pattern": "^[^.*>\\s]{1,255}$", "x-muster-create-only": true},
    "name": {"type": "string", "pattern": "^[^.*>\\s]{1,255}$", "x-muster-create-only": true},
    "durable_name": {"type": "string", "x-muster-create-only": true},
    "ephemeral": {"type": "boolean", "readOnly": true},
    "description": {"type": "string"},
    "deliver_policy": {"type": "string", "x-muster-create-only": true},
    "deliver_subject": {"type": "string"},
    "deliver_group": {"type": "string"},
    "ack_policy": {"enum": ["none", "all", "explicit"], "x-muster-create-only": true},
    "ack_wait": {"type": "integer", "minimum": 0},
    "max_deliver": {"type": "integer"},
    "max_ack_pending": {"type": "integer"},
    "max_waiting": {"type": "integer"},
    "filter_subject": {"type": "string"},
    "replay_policy": {"enum": ["instant", "original"], "x-muster-create-only": true},
    "inactive_threshold": {"type": "integer", "minimum": 0},
    "num_replicas": {"type": "integer", "minimum": 0, "maximum": 5},
    "metadata": {"type": "object", "additionalProperties": {"type": "string"}}
  },
  "required": ["stream", "name", "ephemeral"]
})";

inline constexpr char kKeyValueSchema[] = R"({
  "type": "object",
  "properties": {
    "bucket": {"type": "string", "minLength": 1, "maxLength": 252, "x-muster-create-only": true},
    "name": {"type": "string", "pattern": "^KV_", "x-muster-create-only": true},
    "description": {"type": "string"},
    "storage": {"enum": ["file", "memory"], "default": "file", "x-muster-create-only": true},
    "max_msgs_per_subject": {"type": "integer", "description": "Revisions kept of each key"},
    "max_age": {"type": "integer", "minimum": 0, "description": "Nanoseconds until a value expires; 0: never"},
    "max_bytes": {"type": "integer"},
    "max_msg_size": {"type": "integer"},
    "num_replicas": {"type": "integer", "minimum": 1, "maximum": 5}
  },
  "required": ["bucket", "name"]
})";

}  // namespace muster::nats
