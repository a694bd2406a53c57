@0xb3f1c0de5a7e1104;
# Manifest: what a plugin can do. Fetched once per hash (Control.sendManifest) and stored by coordinators.
# Its hash, in Announcement.manifest, is the SHA-256 of the encoded message, in lower-case hex.
# Everything is since version 1 unless it says otherwise.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("muster::wire");

struct Manifest {
  plugin @0 :Text;
  namespace @1 :Text;
  version @2 :Text;
  description @3 :Text;
  types @4 :List(TypeDescriptor);     # at most 4096; names are unique and begin with `<namespace>::`
  labelQuery @5 :Text;                # RFC 9535 JSONPath; a type's own query wins; empty: the native id is the label
  filters @6 :List(MatchFilter);      # at most 4096; hold for every target; InspectResult.filters add to them. What
                                      # they cost to compile is bounded (WRITING_PLUGINS.md), as of all labelQuery
  configSchema @7 :Text;              # JSON Schema of a target's config; `x-muster-secret: true` marks secrets
  functions @8 :List(Function);       # at most 4096
}

struct TypeDescriptor {
  name @0 :Text;                      # `PG::Table`, 3..196 bytes
  description @1 :Text;
  schema @2 :Text;                    # JSON Schema of the properties; what it says of changes stands below
  parent @3 :Text;                    # type below whose objects this one is listed; may be itself; empty: root
  parentParameters @4 :List(ParentParameter); # at most 64; sent with each List below a parent
  listGives @5 :ListGives;
  contained @6 :Bool = true;          # vanishes with its parent; false: is judged by Read
  operations @7 :List(Operation);
  labelQuery @8 :Text;
  discoverable @9 :Bool = true;
  settleMs @10 :UInt32;               # within which NOT_FOUND after a create proves nothing
  pageSize @11 :UInt32;               # of List; 0: the coordinator chooses
  readBatch @12 :UInt32;              # ids in one Read, 1..1000; 0: the coordinator chooses
  examples @13 :List(Text);           # JSON objects, at most 256
}

# What a type's schema says of changes. Keys of a property's schema:
#   readOnly: true               the system's own: not declared, not compared
#   writeOnly: true              is never read back: compared with what was declared before
#   default: V                   what the system takes where nothing is declared, which is then no difference;
#                                x-muster-default: V wins where JSON Schema's sense of it is another
#   contentMediaType: "application/json"   a string that holds JSON, compared as JSON
#   uniqueItems: true, x-muster-unordered: true   an array whose order means nothing
#   x-muster-key: "name"         an array of objects that this property of theirs tells apart
#   x-muster-create-only: true   cannot be changed: another value takes another object in place of this one
#   x-muster-secret: true        a declaration gives it as a reference only (Document.secrets)
# Keys of the schema itself, at its root:
#   x-muster-identity: ["name"]  names of properties that identify an object within its target. What is there
#                                with the declared values is adopted by a declaration; and so is found what a create of
#                                unknown outcome has made. Without it only a declared native id adopts
#   x-muster-replace: "create-first"   the new object is made before the old one is deleted. Without it the old one goes
#                                first, as most systems do not hold two of one name
# A type can be declared if it has `create`. Without `update` a difference is refused, but for one that takes another
# object; without `delete` that is refused, too. Changes need `read`.

struct ParentParameter {
  name @0 :Text;      # key in Parent.parameters
  property @1 :Text;  # key of the parent's properties
}

enum ListGives {
  ids @0;         # List gives native ids only: each is read
  properties @1;  # List gives all properties: none needs to be read
}

enum Operation {
  list @0; read @1; create @2; update @3; delete @4; status @5; check @6; diff @7;
}

struct Function {
  kind @0 :Text;         # name of a CallKind
  name @1 :Text;
  inputSchema @2 :Text;  # JSON Schema
  returns @3 :Text;      # type name, or empty
}

struct MatchFilter {
  # Kept = (no include filter applies to the type, or one matches) and no exclude filter matches.
  types @0 :List(Text);            # at most 4096; empty: all types of the namespace
  conditions @1 :List(Condition);  # at most 256; all must hold; none: always holds
  action @2 :FilterAction;
}

enum FilterAction { exclude @0; include @1; }

struct Condition {
  union {
    tag @0 :TagMatch;
    property @1 :PropertyMatch;
  }
}

struct TagMatch {
  keys @0 :List(Text);  # any of these, at most 256
  value @1 :Text;       # empty: the key exists
}

struct PropertyMatch {
  path @0 :Text;   # RFC 9535 JSONPath over the merged properties; several nodes: any may match
  op @1 :MatchOp;
  value @2 :Text;  # JSON: any value for eq and contains (substring, or element of an array), a string for regex (RE2
                   # search, of at most 8 KiB, and 128 KiB compiled). No text, null or an empty string: exists
}

enum MatchOp { eq @0; contains @1; regex @2; exists @3; }
