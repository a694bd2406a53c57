#pragma once

#include <memory>

#include <nats/nats.h>

namespace muster {

/// Deleter of an object of the NATS C client.
template <auto kDestroy>
struct NatsDestroy {
  template <typename T>
  void operator()(T* object) const noexcept {
    kDestroy(object);
  }
};

using MsgPtr = std::unique_ptr<natsMsg, NatsDestroy<natsMsg_Destroy>>;
using OptionsPtr = std::unique_ptr<natsOptions, NatsDestroy<natsOptions_Destroy>>;
using ConnectionPtr = std::unique_ptr<natsConnection, NatsDestroy<natsConnection_Destroy>>;
using SubscriptionPtr = std::unique_ptr<natsSubscription, NatsDestroy<natsSubscription_Destroy>>;

}  // namespace muster
