#include "schema/wire.h"
#include "worker.capnp.h"

#include <cmath>

namespace muster {
namespace wire {

static_assert(PROTOCOL_MAJOR == kProtocolMajor);

constexpr std::size_t kMaxRunning = 1024;  // as many as slots

void put(const muster::Running& value, Running::Builder to) {
  to.setJobId(text(value.job.value));
  to.setToken(text(value.token.value));
}

muster::Running get(Running::Reader from) {
  return {JobId{get_token(from.getJobId(), "Running.jobId")}, Token{get_token(from.getToken(), "Running.token")}};
}

void put(const muster::Announcement& value, Announcement::Builder to) {
  to.setWorker(text(value.worker.value));
  to.setNamespace(text(value.ns));
  to.setPool(text(value.pool));
  to.setProtocol(value.protocol);
  put_texts(value.features, to.initFeatures(count(value.features)));
  to.setPlugin(text(value.plugin));
  to.setVersion(text(value.version));
  to.setManifest(text(value.manifest));
  to.setSlots(value.slots);
  to.setMaxRequestsPerSecond(value.max_requests_per_second);
  to.setHost(text(value.host));
  to.setPid(value.pid);
  put_all(value.running, to.initRunning(count(value.running)));
  to.setFleet(text(value.fleet.value));
}

// The names are for the coordinator to judge: a rejection tells the worker's operator why, silence does not.
muster::Announcement get(Announcement::Reader from) {
  muster::Announcement announcement;
  announcement.worker = WorkerId{get_text(from.getWorker(), "Announcement.worker", 0, kMaxNameBytes)};
  announcement.ns = get_text(from.getNamespace(), "Announcement.namespace", 0, kMaxNameBytes);
  announcement.pool = get_text(from.getPool(), "Announcement.pool", 0, kMaxNameBytes);
  announcement.protocol = from.getProtocol();
  announcement.features = get_texts(at_most(kMaxFeatures, from.getFeatures(), "Announcement.features"),
                                    "Announcement.features", kMaxNameBytes);
  announcement.plugin = get_text(from.getPlugin(), "Announcement.plugin", 0, kMaxNameBytes);
  announcement.version = get_text(from.getVersion(), "Announcement.version", 0, kMaxNameBytes);
  announcement.manifest = get_text(from.getManifest(), "Announcement.manifest", 0, kMaxNameBytes);
  announcement.slots = from.getSlots();
  announcement.max_requests_per_second = from.getMaxRequestsPerSecond();
  if (!std::isfinite(announcement.max_requests_per_second) || announcement.max_requests_per_second < 0) {
    throw Malformed("Announcement.maxRequestsPerSecond", "not a rate");
  }
  announcement.host = get_text(from.getHost(), "Announcement.host", 0, kMaxNameBytes);
  announcement.pid = from.getPid();
  announcement.running = get_all(at_most(kMaxRunning, from.getRunning(), "Announcement.running"));
  announcement.fleet = FleetId{get_text(from.getFleet(), "Announcement.fleet", 0, kMaxNameBytes)};
  return announcement;
}

void put(const muster::AnnouncementReply& value, AnnouncementReply::Builder to) {
  to.setFleet(text(value.fleet.value));
  to.setCoordinator(text(value.coordinator.value));
  if (value.rejected) {
    auto rejected = to.initRejected();
    rejected.setCode(text(value.rejected->code));
    rejected.setMessage(text(value.rejected->message));
    rejected.setFinal(value.rejected->final);
  } else {
    to.setAccepted();
  }
  put_texts(value.features, to.initFeatures(count(value.features)));
}

std::optional<muster::Rejection> get_rejection(AnnouncementReply::Reader from) {
  switch (from.which()) {
    case AnnouncementReply::ACCEPTED:
      return std::nullopt;
    case AnnouncementReply::REJECTED: {
      const auto rejected = from.getRejected();
      return muster::Rejection{get_text(rejected.getCode(), "Rejection.code"),
                               get_text(rejected.getMessage(), "Rejection.message"), rejected.getFinal()};
    }
  }
  throw Malformed("AnnouncementReply", "unknown kind");
}

muster::AnnouncementReply get(AnnouncementReply::Reader from) {
  return {FleetId{get_token(from.getFleet(), "AnnouncementReply.fleet")},
          CoordinatorId{get_token(from.getCoordinator(), "AnnouncementReply.coordinator")}, get_rejection(from),
          get_texts(at_most(kMaxFeatures, from.getFeatures(), "AnnouncementReply.features"),
                    "AnnouncementReply.features", kMaxNameBytes)};
}

void put(const muster::Heartbeat& value, Heartbeat::Builder to) {
  to.setWorker(text(value.worker.value));
  to.setNamespace(text(value.ns));
  to.setPool(text(value.pool));
  to.setFreeSlots(value.free_slots);
  put_all(value.running, to.initRunning(count(value.running)));
  to.setDraining(value.draining);
  to.setStuckSlots(value.stuck_slots);
  to.setHealthy(value.healthy);
  to.setHealth(text(value.health));
}

muster::Heartbeat get(Heartbeat::Reader from) {
  muster::Heartbeat heartbeat;
  heartbeat.worker = WorkerId{get_token(from.getWorker(), "Heartbeat.worker")};
  heartbeat.ns = get_namespace(from.getNamespace(), "Heartbeat.namespace");
  heartbeat.pool = get_namespace(from.getPool(), "Heartbeat.pool");
  heartbeat.free_slots = from.getFreeSlots();
  heartbeat.running = get_all(at_most(kMaxRunning, from.getRunning(), "Heartbeat.running"));
  heartbeat.draining = from.getDraining();
  heartbeat.stuck_slots = from.getStuckSlots();
  heartbeat.healthy = from.getHealthy();
  heartbeat.health = get_text(from.getHealth(), "Heartbeat.health");
  return heartbeat;
}

void put(const muster::RollCall& value, RollCall::Builder to) {
  to.setFleet(text(value.fleet.value));
  to.setCoordinator(text(value.coordinator.value));
}

muster::RollCall get(RollCall::Reader from) {
  return {FleetId{get_token(from.getFleet(), "RollCall.fleet")},
          CoordinatorId{get_token(from.getCoordinator(), "RollCall.coordinator")}};
}

struct PutAction {
  Control::Builder to;
  void operator()(const Go& go) { put(go.job, to.initGo()); }
  void operator()(const Cancel& cancel) { put(cancel.job, to.initCancel()); }
  void operator()(const Drain&) { to.setDrain(); }
  void operator()(const SendManifest& manifest) { to.setSendManifest(text(manifest.hash)); }
};

void put(const muster::Control& value, Control::Builder to) {
  to.setFleet(text(value.fleet.value));
  std::visit(PutAction{to}, value.action);
}

decltype(muster::Control::action) get_action(Control::Reader from) {
  switch (from.which()) {
    case Control::GO:
      return Go{get(from.getGo())};
    case Control::CANCEL:
      return Cancel{get(from.getCancel())};
    case Control::DRAIN:
      return Drain{};
    case Control::SEND_MANIFEST:
      return SendManifest{get_text(from.getSendManifest(), "Control.sendManifest")};
  }
  throw Malformed("Control", "unknown kind");
}

muster::Control get(Control::Reader from) {
  return {FleetId{get_token(from.getFleet(), "Control.fleet")}, get_action(from)};
}

}  // namespace wire

Bytes encode(const Announcement& message) {
  return wire::encode_as<wire::Announcement>(message);
}
Bytes encode(const AnnouncementReply& message) {
  return wire::encode_as<wire::AnnouncementReply>(message);
}
Bytes encode(const Heartbeat& message) {
  return wire::encode_as<wire::Heartbeat>(message);
}
Bytes encode(const RollCall& message) {
  return wire::encode_as<wire::RollCall>(message);
}
Bytes encode(const Control& message) {
  return wire::encode_as<wire::Control>(message);
}

template <>
Result<Announcement> decode(std::string_view bytes) {
  return wire::decode_as<wire::Announcement>(bytes);
}

template <>
Result<AnnouncementReply> decode(std::string_view bytes) {
  return wire::decode_as<wire::AnnouncementReply>(bytes);
}

template <>
Result<Heartbeat> decode(std::string_view bytes) {
  return wire::decode_as<wire::Heartbeat>(bytes);
}

template <>
Result<RollCall> decode(std::string_view bytes) {
  return wire::decode_as<wire::RollCall>(bytes);
}

template <>
Result<Control> decode(std::string_view bytes) {
  return wire::decode_as<wire::Control>(bytes);
}

}  // namespace muster
