#include "executors/pipeline/isolation/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace headrace::executors::pipeline::isolation {
namespace {

// Waits until there is something to read; returns false at the end of the time.
bool wait_for_data(int connection, Until until) {
  pollfd state{.fd = connection, .events = POLLIN, .revents = 0};
  while (true) {
    std::timespec left{};
    if (until.has_value()) {
      const auto time = std::max<Clock::duration>(*until - Clock::now(), Clock::duration::zero());
      const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
      left = {.tv_sec = static_cast<std::time_t>(seconds.count()),
              .tv_nsec = std::chrono::nanoseconds(time - seconds).count()};
    }
    const int count = ::ppoll(&state, 1, until.has_value() ? &left : nullptr, nullptr);
    if (count > 0) return true;
    if (count == 0) return false;
    if (errno != EINTR) return true;  // receiving says what is wrong
  }
}

}  // namespace

Received receive(int connection, Message& message, Until until) noexcept {
  while (true) {
    if (!wait_for_data(connection, until)) return Received::timeout;
    const ssize_t nbytes = ::recv(connection, &message, sizeof(Message), MSG_DONTWAIT | MSG_TRUNC);
    if (nbytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (nbytes <= 0) return Received::ended;
    const bool is_whole = nbytes == static_cast<ssize_t>(sizeof(Message)) && message.magic == Message::kMagic;
    return is_whole && message.kind <= MessageKind::answer ? Received::message : Received::malformed;
  }
}

bool send(int connection, const Message& message) noexcept {
  while (true) {
    if (::send(connection, &message, sizeof(Message), MSG_NOSIGNAL) >= 0) return true;
    if (errno != EINTR) return false;
  }
}

}  // namespace headrace::executors::pipeline::isolation
