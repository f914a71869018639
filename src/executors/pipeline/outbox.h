// Outbox: the outcomes of requests that nobody holds a ticket of, until they are read.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "executors/pipeline/request.h"

namespace headrace::executors::pipeline {

// Any thread may call any of its functions.
class Outbox {
 public:
  // Notes a request that has entered; called in the order of their numbers.
  void add(std::shared_ptr<Request> request);
  // Notes that such a request is done; does nothing for one that was removed.
  void done(const Request& request);
  // Return a request that is done, and forget it: the oldest that entered, or the first that was done. Wait for it
  // until `until`. Null when there was none in time, or when the outbox is closed and has none left.
  std::shared_ptr<Request> next(Until until);
  std::shared_ptr<Request> next_done(Until until);
  // Forgets a request without an outcome for its reader.
  void remove(const Request& request);
  // Lets readers return when there is nothing left.
  void close();
  // Returns the number of outcomes that can be read.
  size_t num_done() const;

 private:
  std::deque<std::shared_ptr<Request>>::iterator find(const Request& request);
  std::shared_ptr<Request> take(std::deque<std::shared_ptr<Request>>::iterator found);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Request>> entered_;  // in order; the done ones among them are in done_, too
  std::deque<const Request*> done_;
  bool is_closed_ = false;
};

}  // namespace headrace::executors::pipeline
