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
    "latency_ms": {"$ref": "#/$defs/duration", "description": "How long a call takes"},
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
    "state": {"type": "string", "pattern": "^/", "description": "Path of a file that fake workers share: what is written stands there. Without it nothing can be written"},
    "async_ms": {"$ref": "#/$defs/duration", "description": "Changes answer in_progress, and are done after so long"},
    "consistency_ms": {"type": "integer", "minimum": 0, "maximum": 1999, "default": 0,
                       "description": "For so long after its creation neither Read nor List finds an object"},
    "fail": {"type": "object", "description": "How calls go wrong; rates are drawn anew for each call",
             "properties": {"create": {"$ref": "#/$defs/failures"}, "update": {"$ref": "#/$defs/failures"},
                            "delete": {"$ref": "#/$defs/failures"}, "status": {"$ref": "#/$defs/failures"},
                            "read": {"$ref": "#/$defs/failures"}},
             "additionalProperties": false},
    "fail_names": {"type": "object", "additionalProperties": {"type": "string"},
                   "description": "Name to error code: create and update of such a name always fail"},
    "unique_names": {"type": "boolean", "default": true,
                     "description": "false: two objects may have one name"}
  },
  "additionalProperties": false,
  "$defs": {
    "rate": {"type": "number", "minimum": 0, "maximum": 1, "default": 0},
    "duration": {"description": "In milliseconds", "default": 0, "oneOf": [
      {"type": "number", "minimum": 0, "maximum": 3600000, "description": "Always as long"},
      {"type": "object", "description": "Uniform",
       "properties": {"min": {"type": "number", "minimum": 0, "maximum": 3600000},
                      "max": {"type": "number", "minimum": 0, "maximum": 3600000}},
       "required": ["min", "max"], "additionalProperties": false},
      {"type": "object", "description": "Lognormal: median, and what 99 of 100 stay below",
       "properties": {"p50": {"type": "number", "minimum": 0.001, "maximum": 3600000},
                      "p99": {"type": "number", "minimum": 0.001, "maximum": 3600000}},
       "required": ["p50", "p99"], "additionalProperties": false}]},
    "failures": {"type": "object", "additionalProperties": false, "properties": {
      "before": {"$ref": "#/$defs/rate", "description": "Error without having acted"},
      "after": {"$ref": "#/$defs/rate", "description": "Error after having acted"},
      "code": {"type": "string", "default": "SERVICE_UNAVAILABLE", "description": "Of these errors"},
      "crash_before": {"$ref": "#/$defs/rate", "description": "The worker kills itself without having acted"},
      "crash_after": {"$ref": "#/$defs/rate", "description": "The worker kills itself after having acted"},
      "hang_before_ms": {"$ref": "#/$defs/duration", "description": "Waits without having acted"},
      "hang_after_ms": {"$ref": "#/$defs/duration", "description": "Waits after having acted"},
      "hang_rate": {"type": "number", "minimum": 0, "maximum": 1, "default": 1, "description": "Share of calls that wait"},
      "stubborn": {"type": "boolean", "default": false, "description": "Waits on when the call is stopped"}}}
  }
})";

inline constexpr char kThingSchema[] = R"({
  "type": "object",
  "properties": {
    "Tags": {"type": "array", "x-muster-unordered": true, "x-muster-key": "Key", "items": {
      "type": "object",
      "properties": {"Key": {"type": "string"}, "Value": {"type": "string"}},
      "required": ["Key", "Value"], "additionalProperties": false}},
    "created_at": {"type": "string", "format": "date-time", "readOnly": true},
    "document": {"type": "string", "contentMediaType": "application/json",
                 "description": "JSON; the cloud keeps it in its own spelling"},
    "endpoint": {"type": "string", "readOnly": true, "description": "Where a written thing would answer"},
    "id": {"type": "string", "readOnly": true, "description": "Native id of a written thing"},
    "index": {"type": "integer", "readOnly": true, "description": "Number of a computed thing"},
    "name": {"type": "string", "minLength": 1},
    "notes": {"type": "string", "default": ""},
    "owner": {"type": "string", "description": "Free text, as the id of another thing"},
    "payload": {"type": "string", "readOnly": true, "description": "Ballast of computed things"},
    "region": {"type": "string", "x-muster-create-only": true},
    "revision": {"type": "integer", "readOnly": true, "description": "How often it was changed"},
    "secret": {"type": "string", "writeOnly": true, "x-muster-secret": true, "description": "Never given back"},
    "size": {"type": "integer", "minimum": 0, "default": 0}
  },
  "required": ["name"],
  "additionalProperties": false,
  "x-muster-identity": ["name"]
})";

}  // namespace muster::fake
