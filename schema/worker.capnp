@0xb3f1c0de5a7e1103;
# What workers and coordinators say about workers.
#
# A worker's start: subscribe muster.worker.<ns>.<w>.job, muster.worker.<ns>.<w>.control and muster.rollcall; then
# request muster.announce.<ns> with an Announcement, again every second until an AnnouncementReply comes; accepted:
# join queue group "workers" of the job subject and send a Heartbeat to muster.heartbeat.<ns> every second. A RollCall
# (after a coordinator's start) is answered by announcing again, after a random delay of up to 250 ms.
# <w> is a new random id for each start of a worker process.
#
# Everything is since version 1 unless it says otherwise.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("muster::wire");

const protocolMajor :UInt16 = 1;  # a worker of another major version is rejected

# Features: `waiting-room` (Job.waitMs).

struct Announcement {
  # Subject: muster.announce.<ns>, as a request. A text is at most 256 bytes long.
  worker @0 :Text;         # <w>. since 1
  namespace @1 :Text;      # since 1
  pool @2 :Text;           # `default` unless told otherwise. since 1
  protocol @3 :UInt16;     # protocolMajor. since 1
  features @4 :List(Text); # names of optional parts of the protocol that this worker speaks, at most 64. since 1
  plugin @5 :Text;         # `postgres`. since 1
  version @6 :Text;        # of the plugin, SemVer. since 1
  manifest @7 :Text;       # lower-case hex SHA-256 of the encoded Manifest. since 1
  slots @8 :UInt16;        # jobs it runs at once, 1..1024. since 1
  maxRequestsPerSecond @9 :Float64; # of the namespace, for the whole fleet; 0 = no limit. since 1
  host @10 :Text;          # for people. since 1
  pid @11 :UInt32;         # for people. since 1
  running @12 :List(Running); # jobs it already runs, when it announces again. since 1
  fleet @13 :Text;         # the fleet that accepted it before; empty at first. since 1
}

struct AnnouncementReply {
  fleet @0 :Text;
  coordinator @1 :Text;    # <c>
  union {
    accepted @2 :Void;
    rejected @3 :Rejection;
  }
  features @4 :List(Text);
}

struct Rejection {
  code @0 :Text;     # PROTOCOL, NAMESPACE, MANIFEST, LIMIT, FLEET
  message @1 :Text;  # for the worker's operator: what is wrong and what to do
  final @2 :Bool;    # true: announcing again does not help; the worker logs the reason and exits
}

struct Heartbeat {
  # Subject: muster.heartbeat.<ns>, every second.
  worker @0 :Text;
  namespace @1 :Text;
  freeSlots @2 :UInt16;
  running @3 :List(Running);  # each renews the lease of its (job, token)
  draining @4 :Bool;          # takes no new job
  stuckSlots @5 :UInt16;      # slots whose job ignores its cancellation
  healthy @6 :Bool = true;    # the plugin's own health check
  health @7 :Text;            # why not; at most 4 KiB
  pool @8 :Text;
}

struct Running {
  jobId @0 :Text;
  token @1 :Text;
}

struct RollCall {
  # Subject: muster.rollcall. Sent after a coordinator's start and when a heartbeat comes from an unknown worker.
  fleet @0 :Text;
  coordinator @1 :Text;
}

struct Control {
  # Subject: muster.worker.<ns>.<w>.control
  fleet @0 :Text;
  union {
    go @1 :Running;          # begin the mutation that was claimed by `accepted`
    cancel @2 :Running;      # stop; answer CANCELLED unless it is done
    drain @3 :Void;          # take no new job, finish your own, exit
    sendManifest @4 :Text;   # hash; answer JobReply.manifest on this message's reply subject, in parts if need be
  }
}
