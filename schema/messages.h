#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schema/ids.h"
#include "schema/result.h"

/// The messages of the protocol as plain values. Units, limits and meaning of each field stand in the .capnp files;
/// names here are the same, in snake_case.
namespace muster {

using Bytes = std::string;     // any bytes
using JsonText = std::string;  // UTF-8 JSON

inline constexpr std::uint16_t kProtocolMajor = 1;
inline constexpr std::size_t kMaxPropertiesBytes = 256 * 1024;
inline constexpr std::size_t kMaxNativeIdBytes = 16 * 1024;
inline constexpr std::size_t kMaxPageTokenBytes = 16 * 1024;
inline constexpr std::size_t kMaxReadBatch = 1000;
inline constexpr std::size_t kMaxTypes = 4096;
inline constexpr std::size_t kMaxParts = 4096;

// ---- job.capnp

struct SecretPart {
  enum class Kind : std::uint8_t { kLiteral, kEnv, kFile, kSecret };
  Kind kind = Kind::kLiteral;
  std::string text;
  bool operator==(const SecretPart&) const = default;
};

struct Secret {
  std::string pointer;
  std::vector<SecretPart> parts;
  bool operator==(const Secret&) const = default;
};

struct Document {
  JsonText json = "{}";
  std::vector<Secret> secrets;
  bool operator==(const Document&) const = default;
};

struct Target {
  TargetId id;
  std::string name;
  Document config;
  bool operator==(const Target&) const = default;
};

struct Parent {
  std::string type;
  std::string native_id;
  JsonText parameters = "{}";
  bool operator==(const Parent&) const = default;
};

struct ListJob {
  std::optional<Parent> parent;
  std::string page_token;
  std::uint32_t page_size = 0;
  std::uint16_t pages = 0;
  bool operator==(const ListJob&) const = default;
};

struct ReadJob {
  std::vector<std::string> native_ids;
  bool operator==(const ReadJob&) const = default;
};

struct Precondition {
  std::string uid;
  std::string state_hash;
  bool operator==(const Precondition&) const = default;
};

struct CreateJob {
  std::string idempotency_key;
  Document properties;
  std::optional<Parent> parent;
  bool operator==(const CreateJob&) const = default;
};

struct UpdateJob {
  std::string idempotency_key;
  std::string native_id;
  JsonText prior;
  Document desired;
  JsonText patch;
  Precondition precondition;
  bool operator==(const UpdateJob&) const = default;
};

struct DeleteJob {
  std::string idempotency_key;
  std::string native_id;
  Precondition precondition;
  bool operator==(const DeleteJob&) const = default;
};

struct StatusJob {
  std::string request_id;
  std::string native_id;
  bool operator==(const StatusJob&) const = default;
};

struct InspectJob {
  bool operator==(const InspectJob&) const = default;
};

enum class CallKind : std::uint16_t { kCheck, kDiff, kInvoke, kTransform, kContribute, kSelect, kAct, kRecover };

struct CallJob {
  CallKind kind = CallKind::kCheck;
  std::string function;
  Document input;
  std::string idempotency_key;
  bool operator==(const CallJob&) const = default;
};

using JobOperation = std::variant<ListJob, ReadJob, CreateJob, UpdateJob, DeleteJob, StatusJob, InspectJob, CallJob>;

enum class Priority : std::uint16_t { kDiscovery, kDrift, kStatus, kCommand };

struct Job {
  FleetId fleet;
  JobId id;
  Token token;
  std::uint16_t attempt = 1;
  std::string ns;
  std::string pool = "default";
  Target target;
  std::string type;
  std::string manifest;
  Millis lease{0};
  Millis deadline{0};
  Priority priority = Priority::kDiscovery;
  JobOperation operation;
  Millis wait{0};  // for a slot, 65535 at most; longer ones are cut
  bool operator==(const Job&) const = default;
};

/// Name of an operation as logs, events and errors show it (`list`, `read`, ...).
std::string_view operation_name(const JobOperation& operation);
/// Whether the operation may change the target (create, update, delete, and the calls that act).
bool is_mutation(const JobOperation& operation);

// ---- manifest.capnp

enum class FilterAction : std::uint16_t { kExclude, kInclude };
enum class MatchOp : std::uint16_t { kEq, kContains, kRegex, kExists };

struct TagMatch {
  std::vector<std::string> keys;
  std::string value;
  bool operator==(const TagMatch&) const = default;
};

struct PropertyMatch {
  std::string path;
  MatchOp op = MatchOp::kExists;
  JsonText value;
  bool operator==(const PropertyMatch&) const = default;
};

using Condition = std::variant<TagMatch, PropertyMatch>;

struct MatchFilter {
  std::vector<std::string> types;
  std::vector<Condition> conditions;
  FilterAction action = FilterAction::kExclude;
  bool operator==(const MatchFilter&) const = default;
};

enum class ListGives : std::uint16_t { kIds, kProperties };
enum class Operation : std::uint16_t { kList, kRead, kCreate, kUpdate, kDelete, kStatus, kCheck, kDiff };

struct ParentParameter {
  std::string name;
  std::string property;
  bool operator==(const ParentParameter&) const = default;
};

struct TypeDescriptor {
  std::string name;
  std::string description;
  JsonText schema;
  std::string parent;
  std::vector<ParentParameter> parent_parameters;
  ListGives list_gives = ListGives::kIds;
  bool contained = true;
  std::vector<Operation> operations;
  std::string label_query;
  bool discoverable = true;
  Millis settle{0};
  std::uint32_t page_size = 0;
  std::uint32_t read_batch = 0;
  std::vector<JsonText> examples;
  bool operator==(const TypeDescriptor&) const = default;
};

struct Function {
  std::string kind;
  std::string name;
  JsonText input_schema;
  std::string returns;
  bool operator==(const Function&) const = default;
};

struct Manifest {
  std::string plugin;
  std::string ns;
  std::string version;
  std::string description;
  std::vector<TypeDescriptor> types;
  std::string label_query;
  std::vector<MatchFilter> filters;
  JsonText config_schema;
  std::vector<Function> functions;
  bool operator==(const Manifest&) const = default;
};

// ---- reply.capnp

struct Item {
  std::string native_id;
  std::string uid;
  JsonText properties;
  bool operator==(const Item&) const = default;
};

struct Problem {
  std::string native_id;
  Error failure;
  bool operator==(const Problem&) const = default;
};

struct ListResult {
  std::vector<Item> items;
  std::string next_page_token;
  std::vector<Problem> problems;
  std::uint32_t skipped = 0;
  bool operator==(const ListResult&) const = default;
};

using ReadItem = std::variant<Item, Error>;

struct ReadResult {
  std::vector<ReadItem> items;
  bool operator==(const ReadResult&) const = default;
};

enum class MutationStatus : std::uint16_t { kSuccess, kInProgress, kPending };

struct MutationResult {
  MutationStatus status = MutationStatus::kSuccess;
  std::string request_id;
  std::string native_id;
  std::string uid;
  JsonText properties;
  Millis retry_after{0};
  bool operator==(const MutationResult&) const = default;
};

struct InspectResult {
  std::string system;
  std::vector<MatchFilter> filters;
  std::vector<std::string> types;
  bool operator==(const InspectResult&) const = default;
};

struct CallResult {
  JsonText output;
  bool user_fault = false;
  bool operator==(const CallResult&) const = default;
};

using JobResult = std::variant<Error, ListResult, ReadResult, MutationResult, InspectResult, CallResult>;

struct Accepted {
  bool operator==(const Accepted&) const = default;
};
struct Busy {
  bool operator==(const Busy&) const = default;
};
struct Part {
  std::uint32_t index = 0;
  std::uint32_t count = 0;
  Bytes data;
  bool operator==(const Part&) const = default;
};
struct ManifestBytes {
  Bytes encoded;
  bool operator==(const ManifestBytes&) const = default;
};

struct JobReply {
  FleetId fleet;
  JobId job;
  Token token;
  WorkerId worker;
  std::uint16_t attempt = 1;
  std::uint32_t calls = 0;
  std::variant<Accepted, Busy, JobResult, Part, ManifestBytes> body;
  bool operator==(const JobReply&) const = default;
};

enum class Verdict : std::uint16_t { kCommitted, kSuperseded, kRefused, kLater };

struct ResultAck {
  JobId job;
  Token token;
  Verdict verdict = Verdict::kCommitted;
  std::string reason;
  bool operator==(const ResultAck&) const = default;
};

// ---- worker.capnp

struct Running {
  JobId job;
  Token token;
  bool operator==(const Running&) const = default;
};

/// The feature of a worker where jobs may wait for a slot (Job::wait).
inline constexpr std::string_view kWaitingRoom = "waiting-room";

struct Announcement {
  WorkerId worker;
  std::string ns;
  std::string pool = "default";
  std::uint16_t protocol = kProtocolMajor;
  std::vector<std::string> features;
  std::string plugin;
  std::string version;
  std::string manifest;
  std::uint16_t slots = 1;
  double max_requests_per_second = 0;
  std::string host;
  std::uint32_t pid = 0;
  std::vector<Running> running;
  FleetId fleet;
  bool operator==(const Announcement&) const = default;
};

struct Rejection {
  std::string code;
  std::string message;
  bool final = false;
  bool operator==(const Rejection&) const = default;
};

struct AnnouncementReply {
  FleetId fleet;
  CoordinatorId coordinator;
  std::optional<Rejection> rejected;  // none: accepted
  std::vector<std::string> features;
  bool operator==(const AnnouncementReply&) const = default;
};

struct Heartbeat {
  WorkerId worker;
  std::string ns;
  std::string pool = "default";
  std::uint16_t free_slots = 0;
  std::vector<Running> running;
  bool draining = false;
  std::uint16_t stuck_slots = 0;
  bool healthy = true;
  std::string health;
  bool operator==(const Heartbeat&) const = default;
};

struct RollCall {
  FleetId fleet;
  CoordinatorId coordinator;
  bool operator==(const RollCall&) const = default;
};

struct Go {
  Running job;
  bool operator==(const Go&) const = default;
};
struct Cancel {
  Running job;
  bool operator==(const Cancel&) const = default;
};
struct Drain {
  bool operator==(const Drain&) const = default;
};
struct SendManifest {
  std::string hash;
  bool operator==(const SendManifest&) const = default;
};

struct Control {
  FleetId fleet;
  std::variant<Go, Cancel, Drain, SendManifest> action;
  bool operator==(const Control&) const = default;
};

}  // namespace muster
