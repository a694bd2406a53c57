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
    "description": {"type": "string", "default": ""},
    "subjects": {"type": "array", "items": {"type": "string"}, "minItems": 1, "x-muster-unordered": true},
    "retention": {"enum": ["limits", "interest", "workqueue"], "default": "limits"},
    "storage": {"enum": ["file", "memory"], "default": "file", "x-muster-create-only": true},
    "discard": {"enum": ["old", "new"], "default": "old"},
    "discard_new_per_subject": {"type": "boolean", "default": false},
    "max_consumers": {"type": "integer", "minimum": -1, "not": {"const": 0}, "default": -1},
    "max_msgs": {"type": "integer", "minimum": -1, "not": {"const": 0}, "default": -1},
    "max_msgs_per_subject": {"type": "integer", "minimum": -1, "not": {"const": 0}, "default": -1},
    "max_bytes": {"type": "integer", "minimum": -1, "not": {"const": 0}, "default": -1},
    "max_age": {"type": "integer", "minimum": 0, "default": 0},
    "max_msg_size": {"type": "integer", "minimum": -1, "not": {"const": 0}, "default": -1},
    "num_replicas": {"type": "integer", "minimum": 1, "maximum": 5, "default": 1},
    "no_ack": {"type": "boolean", "default": false},
    "duplicate_window": {"type": "integer", "minimum": 1, "default": 120000000000},
    "placement": {"type": "object", "properties": {
      "cluster": {"type": "string", "default": ""}, "tags": {"type": "array", "default": []}}},
    "mirror": {"type": "object", "x-muster-create-only": true, "properties": {
        "opt_start_seq": {"type": "integer", "minimum": 0, "default": 0},
        "opt_start_time": {"type": "string", "format": "date-time",
          "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{0,8}[1-9])?(Z|[+-](0[1-9]|1[0-9]|2[0-3]):[0-9]{2}|[+-]00:(0[1-9]|[1-5][0-9]))$"},
        "filter_subject": {"type": "string", "default": ""}}},
    "sources": {"type": "array", "default": [], "items": {"type": "object", "properties": {
        "opt_start_seq": {"type": "integer", "minimum": 0, "default": 0},
        "opt_start_time": {"type": "string", "format": "date-time",
          "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{0,8}[1-9])?(Z|[+-](0[1-9]|1[0-9]|2[0-3]):[0-9]{2}|[+-]00:(0[1-9]|[1-5][0-9]))$"},
        "filter_subject": {"type": "string", "default": ""}}}},
    "republish": {"type": "object", "properties": {
      "src": {"type": "string", "not": {"const": ""}}, "headers_only": {"type": "boolean", "default": false}}},
    "deny_delete": {"type": "boolean", "default": false},
    "deny_purge": {"type": "boolean", "default": false},
    "allow_rollup_hdrs": {"type": "boolean", "default": false},
    "allow_direct": {"type": "boolean", "default": false},
    "mirror_direct": {"type": "boolean", "default": false},
    "compression": {"enum": ["none", "s2"], "default": "none", "description": "nats-server 2.10"},
    "first_seq": {"type": "integer", "minimum": 0, "default": 0, "x-muster-create-only": true,
                  "description": "nats-server 2.10"},
    "subject_transform": {"type": "object", "description": "nats-server 2.10"},
    "consumer_limits": {"type": "object", "description": "nats-server 2.10"},
    "metadata": {"type": "object", "additionalProperties": {"type": "string"}, "default": {},
                 "description": "nats-server 2.10"},
    "allow_msg_ttl": {"type": "boolean", "default": false, "description": "nats-server 2.11"},
    "subject_delete_marker_ttl": {"type": "integer", "minimum": 0, "default": 0, "description": "nats-server 2.11"},
    "sealed": {"type": "boolean", "readOnly": true}
  },
  "required": ["name"],
  "x-muster-identity": ["name"]
})";

inline constexpr char kConsumerSchema[] = R"({
  "type": "object",
  "properties": {
    "stream": {"type": "string", "pattern": "^[^.*>\\s]{1,255}$", "x-muster-create-only": true},
    "name": {"type": "string", "pattern": "^[^.*>\\s]{1,255}$", "x-muster-create-only": true},
    "durable_name": {"type": "string", "x-muster-create-only": true, "description": "The name; need not be declared"},
    "ephemeral": {"type": "boolean", "readOnly": true},
    "description": {"type": "string", "default": ""},
    "deliver_policy": {"enum": ["all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"],
                       "default": "all", "x-muster-create-only": true},
    "opt_start_seq": {"type": "integer", "minimum": 0, "default": 0, "x-muster-create-only": true},
    "opt_start_time": {"type": "string", "format": "date-time",
      "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{0,8}[1-9])?(Z|[+-](0[1-9]|1[0-9]|2[0-3]):[0-9]{2}|[+-]00:(0[1-9]|[1-5][0-9]))$",
      "x-muster-create-only": true, "description": "As Go writes it: no zeros at the end of a fraction, Z for UTC"},
    "deliver_subject": {"type": "string", "default": ""},
    "deliver_group": {"type": "string", "default": ""},
    "ack_policy": {"enum": ["none", "all", "explicit"], "default": "none", "x-muster-create-only": true},
    "ack_wait": {"type": "integer", "minimum": 1},
    "backoff": {"type": "array", "items": {"type": "integer"}, "default": []},
    "max_deliver": {"type": "integer", "minimum": -1, "not": {"const": 0}, "default": -1},
    "max_ack_pending": {"type": "integer", "minimum": -1, "not": {"const": 0}},
    "max_waiting": {"type": "integer", "minimum": 1, "x-muster-create-only": true},
    "max_batch": {"type": "integer", "minimum": 0, "default": 0},
    "max_expires": {"type": "integer", "minimum": 0, "default": 0},
    "max_bytes": {"type": "integer", "minimum": 0, "default": 0},
    "filter_subject": {"type": "string", "default": ""},
    "filter_subjects": {"type": "array", "items": {"type": "string"}, "x-muster-unordered": true, "default": [],
                        "description": "nats-server 2.10"},
    "replay_policy": {"enum": ["instant", "original"], "default": "instant", "x-muster-create-only": true},
    "rate_limit_bps": {"type": "integer", "minimum": 0, "default": 0},
    "sample_freq": {"type": "string", "default": ""},
    "headers_only": {"type": "boolean", "default": false},
    "flow_control": {"type": "boolean", "default": false, "x-muster-create-only": true},
    "idle_heartbeat": {"type": "integer", "minimum": 0, "default": 0, "x-muster-create-only": true},
    "inactive_threshold": {"type": "integer", "minimum": 0, "default": 0},
    "num_replicas": {"type": "integer", "minimum": 0, "maximum": 5, "default": 0},
    "mem_storage": {"type": "boolean", "default": false},
    "metadata": {"type": "object", "additionalProperties": {"type": "string"}, "default": {},
                 "description": "nats-server 2.10"}
  },
  "required": ["stream", "name"],
  "x-muster-identity": ["stream", "name"]
})";

inline constexpr char kKeyValueSchema[] = R"({
  "type": "object",
  "properties": {
    "bucket": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,252}$", "x-muster-create-only": true},
    "description": {"type": "string", "default": ""},
    "storage": {"enum": ["file", "memory"], "default": "file", "x-muster-create-only": true},
    "max_msgs_per_subject": {"type": "integer", "minimum": 1, "default": 1,
                             "description": "Revisions kept of each key"},
    "max_age": {"type": "integer", "minimum": 0, "default": 0,
                "description": "Nanoseconds until a value expires; 0: never"},
    "max_bytes": {"type": "integer", "minimum": -1, "not": {"const": 0}, "default": -1},
    "max_msg_size": {"type": "integer", "minimum": -1, "not": {"const": 0}, "default": -1},
    "num_replicas": {"type": "integer", "minimum": 1, "maximum": 5, "default": 1},
    "placement": {"type": "object", "properties": {
      "cluster": {"type": "string", "default": ""}, "tags": {"type": "array", "default": []}}},
    "republish": {"type": "object", "properties": {
      "src": {"type": "string", "not": {"const": ""}}, "headers_only": {"type": "boolean", "default": false}}},
    "compression": {"enum": ["none", "s2"], "default": "none", "description": "nats-server 2.10"},
    "metadata": {"type": "object", "additionalProperties": {"type": "string"}, "default": {},
                 "description": "nats-server 2.10"},
    "name": {"type": "string", "readOnly": true},
    "subjects": {"type": "array", "readOnly": true},
    "retention": {"type": "string", "readOnly": true},
    "discard": {"type": "string", "readOnly": true},
    "max_consumers": {"type": "integer", "readOnly": true},
    "max_msgs": {"type": "integer", "readOnly": true},
    "duplicate_window": {"type": "integer", "readOnly": true},
    "no_ack": {"type": "boolean", "readOnly": true},
    "mirror": {"type": "object", "readOnly": true},
    "sources": {"type": "array", "readOnly": true},
    "sealed": {"type": "boolean", "readOnly": true},
    "deny_delete": {"type": "boolean", "readOnly": true},
    "deny_purge": {"type": "boolean", "readOnly": true},
    "allow_rollup_hdrs": {"type": "boolean", "readOnly": true},
    "allow_direct": {"type": "boolean", "readOnly": true},
    "mirror_direct": {"type": "boolean", "readOnly": true}
  },
  "required": ["bucket"],
  "x-muster-identity": ["bucket"]
})";

}  // namespace muster::nats
