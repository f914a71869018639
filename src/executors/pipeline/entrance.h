// Entrance: the places of a pipeline, and the requests that wait to start.
#pragma once

#include <condition_variable>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "executors/pipeline/request.h"

namespace headrace::executors::pipeline {

// How a submission acts when all places are taken.
enum class WhenFull : uint8_t {
  wait,         // until a place is free, or its time is over
  reject,       // is refused at once
  drop_oldest,  // takes the place of the oldest request that has not started; is refused if there is none
};

// Any thread may call any of its functions.
class Entrance {
 public:
  // `most_unread`: outcomes that may be unread besides the requests that have a place; 0: any number.
  explicit Entrance(size_t num_places, size_t most_unread = 0) : num_places_(num_places), most_unread_(most_unread) {}

  // Gives the request a place, a number and the next turn. `entered` runs before any other request can enter. Returns
  // the request that was dropped for it, if any; its place is now the new one's. Throws RefusedError: PipelineFull, or
  // PipelineStopped once the entrance is closed.
  std::shared_ptr<Request> enter(const std::shared_ptr<Request>& request, WhenFull when_full, Until until,
                                 const std::function<void(Request&)>& entered);
  // Takes the oldest waiting request; null when none waits.
  std::shared_ptr<Request> pop();
  // Calls `visit` for the requests that wait, oldest first, until it returns false. None starts meanwhile.
  void see_waiting(const std::function<bool(const Request&)>& visit) const;
  // Takes a request that waits; returns false when it does not.
  bool remove(const Request& request);
  // Gives a place back.
  void leave();
  // Counts the request that enters as unread; call it in `entered`.
  void counts_until_read() { ++num_unread_; }
  // Notes that the outcome of such a request was read, or is nobody's any more.
  void was_read();

  // Runs `change` while no request can enter; returns the number of the next one.
  uint64_t between_requests(const std::function<void()>& change);
  // Returns the number that the next request gets.
  uint64_t next_number() const;

  // Waits for a free place, or the end: returns whether one of them was there by then.
  bool wait_for_place(Until until);

  // Lets wait_until_done return, because the requests that are in the stages stay there.
  void give_up();
  // Refuses all further requests.
  void close();
  // Takes the requests that wait and have a number below `end`; without it, all.
  std::vector<std::shared_ptr<Request>> clear(uint64_t end = std::numeric_limits<uint64_t>::max());
  // Waits until no request waits or is in the stages, or until give_up() was called: returns whether that is so.
  // Outcomes that nobody has read do not count.
  bool wait_until_done(Until until);
  // Notes that a request has passed the stages, or ends without them; gives its place back, too, if it says so.
  void passed(bool frees_place);

  bool has_waiting() const noexcept { return num_waiting_.load(std::memory_order_acquire) > 0; }
  size_t num_waiting() const noexcept { return num_waiting_.load(std::memory_order_acquire); }
  size_t num_taken() const;

 private:
  std::shared_ptr<Request> take_place(std::unique_lock<std::mutex>& lock, WhenFull when_full, Until until);
  [[noreturn]] void throw_full() const;
  std::shared_ptr<Request> pop_front();
  void wake_sleepers();
  bool has_too_many_unread() const { return most_unread_ > 0 && num_unread_ >= num_places_ + most_unread_; }
  bool has_place() const { return num_taken_ < num_places_ && !has_too_many_unread(); }

  const size_t num_places_;
  const size_t most_unread_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Request>> waiting_;
  std::atomic<size_t> num_waiting_ = 0;
  size_t num_taken_ = 0;   // places
  size_t num_unread_ = 0;  // requests whose outcome is counted until it is read
  size_t num_inside_ = 0;  // requests that wait or are in the stages
  size_t num_sleepers_ = 0;
  uint64_t next_number_ = 0;
  bool is_closed_ = false;
  bool is_given_up_ = false;
};

}  // namespace headrace::executors::pipeline
