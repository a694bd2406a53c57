#pragma once

/// JSON Schemas that the plugin announces.
namespace muster::fake {

inline constexpr char kConfigSchema[] = R"({
  "type": "object",
  "properties": {
    "seed": {"type": "integer", "minimum": 0, "default": 1,
             "description": "Two targets with the same config are the same cloud"},
    "resources": {"type": "integer", "minimum": 0, "maximum": 100000000, "default": 100,
                  "description": "Things of each type"},
    "types": {"type": "integer", "minimum": 1, "maximum": 16, "default": 1,
              "description": "This many, from FAKE::Cloud::Thing0 up"},
    "children": {"type": "integer", "minimum": 0, "maximum": 10000, "default": 0,
                 "description": "FAKE::Cloud::Part below each FAKE::Cloud::Thing0"},
    "page": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 1000,
             "description": "Items in one page of List at most"},
    "bytes": {"type": "integer", "minimum": 0, "maximum": 1048576, "default": 600,
              "description": "Size of the properties of one resource, where it is more than they need anyway"},
    "list_properties": {"type": "boolean", "default": true,
                        "description": "false: List gives ids only, and each resource must be read"},
    "latency_ms": {"type": "integer", "minimum": 0, "maximum": 3600000, "default": 0,
                   "description": "How long each call takes"},
    "error_rate": {"type": "number", "minimum": 0, "maximum": 1, "default": 0,
                   "description": "Share of the calls that fail with SERVICE_UNAVAILABLE"},
    "throttle_rate": {"type": "number", "minimum": 0, "maximum": 1, "default": 0,
                      "description": "Share of the calls that fail with THROTTLING"},
    "filtered_share": {"type": "number", "minimum": 0, "maximum": 1, "default": 0,
                       "description": "Share of the resources with the tag Temp=true, which a filter excludes"},
    "epoch": {"type": "integer", "minimum": 0, "maximum": 4294967295, "default": 0,
              "description": "The time in this cloud"},
    "churn": {"type": "number", "minimum": 0, "maximum": 1, "default": 0,
              "description": "Share of the resources that change from one epoch to the next"},
    "churn_ids": {"type": "number", "minimum": 0, "maximum": 1, "default": 0,
                  "description": "Share of the things that another one replaces from one epoch to the next"},
    "fail_types": {"type": "array", "items": {"type": "string"}, "default": [],
                   "description": "Types whose List fails with ACCESS_DENIED"},
    "state": {"type": "string", "description": "Path that fake workers share for what is written; reads don't use it"}
  },
  "additionalProperties": false
})";

inline constexpr char kThingSchema[] = R"({
  "type": "object",
  "properties": {
    "Tags": {"type": "array", "x-muster-unordered": true, "x-muster-key": "Key", "items": {
      "type": "object",
      "properties": {"Key": {"type": "string"}, "Value": {"type": "string"}},
      "required": ["Key", "Value"]}},
    "index": {"type": "integer", "readOnly": true},
    "name": {"type": "string"},
    "payload": {"type": "string"},
    "region": {"type": "string", "x-muster-create-only": true},
    "revision": {"type": "integer", "readOnly": true},
    "size": {"type": "integer", "minimum": 0}
  },
  "required": ["name"]
})";

inline constexpr char kPartSchema[] = R"({
  "type": "object",
  "properties": {
    "Tags": {"type": "array", "x-muster-unordered": true, "x-muster-key": "Key", "items": {
      "type": "object",
      "properties": {"Key": {"type": "string"}, "Value": {"type": "string"}},
      "required": ["Key", "Value"]}},
    "index": {"type": "integer", "readOnly": true},
    "name": {"type": "string"},
    "payload": {"type": "string"},
    "region": {"type": "string", "x-muster-create-only": true},
    "revision": {"type": "integer", "readOnly": true},
    "size": {"type": "integer", "minimum": 0},
    "thing": {"type": "string", "description": "Name of the parent", "x-muster-create-only": true}
  },
  "required": ["name", "thing"]
})";

}  // namespace muster::fake
