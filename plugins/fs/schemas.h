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
    "path": {"type": "string", "pattern": "^/", "x-muster-create-only": true,
             "description": "Absolute; bytes that are not UTF-8, and % before two hex digits, as %XX"},
    "mode": {"type": "string", "pattern": "^[0-7]{4}$", "default": "0755"},
    "uid": {"type": "integer", "minimum": 0, "maximum": 4294967294},
    "gid": {"type": "integer", "minimum": 0, "maximum": 4294967294}
  },
  "required": ["path"],
  "additionalProperties": false,
  "x-muster-identity": ["path"]
})";

inline constexpr char kFileSchema[] = R"({
  "type": "object",
  "properties": {
    "path": {"type": "string", "pattern": "^/", "x-muster-create-only": true,
             "description": "Absolute; bytes that are not UTF-8, and % before two hex digits, as %XX"},
    "mode": {"type": "string", "pattern": "^[0-7]{4}$", "default": "0644"},
    "uid": {"type": "integer", "minimum": 0, "maximum": 4294967294},
    "gid": {"type": "integer", "minimum": 0, "maximum": 4294967294},
    "size": {"type": "integer", "minimum": 0, "readOnly": true},
    "mtime": {"type": "string", "format": "date-time", "readOnly": true},
    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$", "readOnly": true},
    "content": {"type": "string", "writeOnly": true, "description": "Never given back; none declared: an empty file"}
  },
  "required": ["path"],
  "additionalProperties": false,
  "x-muster-identity": ["path"]
})";

inline constexpr char kSymlinkSchema[] = R"({
  "type": "object",
  "properties": {
    "path": {"type": "string", "pattern": "^/", "x-muster-create-only": true,
             "description": "Absolute; bytes that are not UTF-8, and % before two hex digits, as %XX"},
    "target": {"type": "string", "minLength": 1, "description": "In the spelling of paths; may be relative"},
    "mode": {"type": "string", "pattern": "^[0-7]{4}$", "readOnly": true},
    "uid": {"type": "integer", "minimum": 0, "maximum": 4294967294},
    "gid": {"type": "integer", "minimum": 0, "maximum": 4294967294}
  },
  "required": ["path", "target"],
  "additionalProperties": false,
  "x-muster-identity": ["path"]
})";

}  // namespace muster::fs
