#pragma once

/// JSON Schemas that the plugin announces.
namespace muster::postgres {

inline constexpr char kConfigSchema[] = R"({
  "type": "object",
  "properties": {
    "dsn": {"type": "string", "minLength": 1, "x-muster-secret": false,
            "description": "Connection string or URI of libpq; the password in it should be a secret's reference"}
  },
  "required": ["dsn"],
  "additionalProperties": false
})";

inline constexpr char kRoleSchema[] = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string"},
    "login": {"type": "boolean"},
    "superuser": {"type": "boolean"},
    "createdb": {"type": "boolean"},
    "createrole": {"type": "boolean"},
    "connection_limit": {"type": "integer", "minimum": -1, "description": "-1: none"},
    "member_of": {"type": "array", "items": {"type": "string"}, "x-muster-unordered": true},
    "password": {"type": "string", "writeOnly": true, "x-muster-secret": true}
  },
  "required": ["name"]
})";

inline constexpr char kDatabaseSchema[] = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string"},
    "owner": {"type": "string"},
    "encoding": {"type": "string", "x-muster-create-only": true}
  },
  "required": ["name"]
})";

inline constexpr char kSchemaSchema[] = R"({
  "type": "object",
  "properties": {
    "database": {"type": "string", "x-muster-create-only": true},
    "name": {"type": "string"},
    "owner": {"type": "string"}
  },
  "required": ["database", "name"]
})";

inline constexpr char kTableSchema[] = R"({
  "type": "object",
  "properties": {
    "database": {"type": "string", "x-muster-create-only": true},
    "schema": {"type": "string"},
    "name": {"type": "string"},
    "owner": {"type": "string"},
    "columns": {"type": "array", "items": {
      "type": "object",
      "properties": {
        "name": {"type": "string"},
        "type": {"type": "string"},
        "nullable": {"type": "boolean"},
        "default": {"type": ["string", "null"], "description": "SQL expression"}
      },
      "required": ["name", "type"]
    }},
    "constraints": {"type": "array", "x-muster-unordered": true, "x-muster-key": "name", "items": {
      "type": "object",
      "properties": {
        "name": {"type": "string"},
        "type": {"enum": ["PRIMARY KEY", "UNIQUE", "FOREIGN KEY", "CHECK", "EXCLUDE"]},
        "definition": {"type": "string"}
      },
      "required": ["name", "definition"]
    }}
  },
  "required": ["database", "schema", "name"]
})";

inline constexpr char kExtensionSchema[] = R"({
  "type": "object",
  "properties": {
    "database": {"type": "string", "x-muster-create-only": true},
    "name": {"type": "string", "x-muster-create-only": true},
    "version": {"type": "string"}
  },
  "required": ["database", "name"]
})";

}  // namespace muster::postgres
