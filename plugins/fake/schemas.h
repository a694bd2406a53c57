#pragma once

/// JSON Schemas that the plugin announces.
namespace muster::fake {

inline constexpr char kConfigSchema[] = R"({
  "type": "object",
  "properties": {
    "seed": {"type": "integer", "minimum": 0, "default": 1,
             "description": "Two targets with the same config are the same cloud"},
    "resources": {"type": "integer", "minimum": 0, "maximum": 100000000, "default": 100,
                  "description": "Things of each type at epoch 0"},
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
    "latency_ms": {"description": "How long a call takes, in milliseconds", "default": 0, "oneOf": [
      {"type": "number", "minimum": 0, "maximum": 3600000, "description": "Each call as long"},
      {"type": "object", "description": "Uniform",
       "properties": {"min": {"type": "number", "minimum": 0, "maximum": 3600000},
                      "max": {"type": "number", "minimum": 0, "maximum": 3600000}},
       "required": ["min", "max"], "additionalProperties": false},
      {"type": "object", "description": "Lognormal: median, and what 99 of 100 calls stay below",
       "properties": {"p50": {"type": "number", "minimum": 0.001, "maximum": 3600000},
                      "p99": {"type": "number", "minimum": 0.001, "maximum": 3600000}},
       "required": ["p50", "p99"], "additionalProperties": false}]},
    "error_rate": {"type": "number", "minimum": 0, "maximum": 1, "default": 0,
                   "description": "Share of the calls that fail with SERVICE_UNAVAILABLE; repeated ones can succeed"},
    "throttle_rate": {"type": "number", "minimum": 0, "maximum": 1, "default": 0,
                      "description": "Share of the calls that fail with THROTTLING; repeated ones can succeed"},
    "filtered_share": {"type": "number", "minimum": 0, "maximum": 1, "default": 0,
                       "description": "Share of the things with the tag Temp=true, which a filter excludes"},
    "epoch": {"type": "integer", "minimum": 0, "maximum": 4294967295, "default": 0,
              "description": "The time in this cloud; shares below are those of `resources`, from one epoch to the next"},
    "change_share": {"type": "number", "minimum": 0, "maximum": 1, "default": 0,
                     "description": "Things whose revision grows"},
    "rename_share": {"type": "number", "minimum": 0, "maximum": 1, "default": 0,
                     "description": "Things that get another native id and name, and keep their uid"},
    "vanish_share": {"type": "number", "minimum": 0, "maximum": 1, "default": 0, "description": "Things that vanish"},
    "appear_share": {"type": "number", "minimum": 0, "maximum": 1, "default": 0, "description": "Things that appear"},
    "fail_types": {"type": "array", "items": {"type": "string"}, "default": [],
                   "description": "Types whose List always fails, with ACCESS_DENIED"},
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
