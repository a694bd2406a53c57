#pragma once

/// JSON Schemas that the plugin announces.
namespace muster::fs {

inline constexpr char kConfigSchema[] = R"({
  "type": "object",
  "properties": {
    "root": {"type": "string", "pattern": "^/", "description": "Absolute path of the directory to look at"},
    "hash": {"type": "boolean", "default": false, "description": "Read every file and give its SHA-256"},
    "unreadable": {"enum": ["problem", "skip"], "default": "problem",
                   "description": "What becomes of what the worker may not read: a problem of the run, or nothing"}
  },
  "required": ["root"],
  "additionalProperties": false
})";

inline constexpr char kDirectorySchema[] = R"({
  "type": "object",
  "properties": {
    "path": {"type": "string", "x-muster-create-only": true},
    "mode": {"type": "string", "pattern": "^[0-7]{4}$"},
    "uid": {"type": "integer", "minimum": 0},
    "gid": {"type": "integer", "minimum": 0}
  },
  "required": ["path"]
})";

inline constexpr char kFileSchema[] = R"({
  "type": "object",
  "properties": {
    "path": {"type": "string", "x-muster-create-only": true},
    "mode": {"type": "string", "pattern": "^[0-7]{4}$"},
    "uid": {"type": "integer", "minimum": 0},
    "gid": {"type": "integer", "minimum": 0},
    "size": {"type": "integer", "minimum": 0, "readOnly": true},
    "mtime": {"type": "string", "format": "date-time", "readOnly": true},
    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$", "readOnly": true},
    "content": {"type": "string", "writeOnly": true}
  },
  "required": ["path"]
})";

inline constexpr char kSymlinkSchema[] = R"({
  "type": "object",
  "properties": {
    "path": {"type": "string", "x-muster-create-only": true},
    "target": {"type": "string"},
    "mode": {"type": "string", "pattern": "^[0-7]{4}$", "readOnly": true},
    "uid": {"type": "integer", "minimum": 0},
    "gid": {"type": "integer", "minimum": 0}
  },
  "required": ["path", "target"]
})";

}  // namespace muster::fs
