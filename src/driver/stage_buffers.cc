#include "driver/stage_buffers.h"

#include <algorithm>

#include "ops/call_fusion.h"
#include "ops/op_facts.h"
#include "ops/op_handles.h"
#include "ops/tensor/join.h"
#include "relay/leaves.h"
#include "relay/match.h"

namespace headrace::driver {

namespace {

using ops::FusionKind;
using Kind = ProgramTensor::Kind;

// Facts about a call that are known before its stage is compiled.
struct CallFacts {
  enum class Role : uint8_t {
    kernel,      // a kernel computes it, alone or with other calls
    view,        // its result is its operand in another shape
    maybe_view,  // as view, unless a kernel computes it with its readers
    unknown,     // passes may put other calls in its place, or join its operands with its result
  };
  Role role = Role::kernel;
  FusionKind kind = FusionKind::opaque;
  int64_t nbytes = 0;              // bytes of its result
  std::vector<size_t> readers{};   // calls, ascending, each once
  bool is_shared_outside = false;  // the program gives its result away, or it has several
  bool may_be_elsewhere = false;

  bool may_share_operand() const { return role == Role::view || role == Role::maybe_view; }
};

// Returns whether the passes of native code replace the call, or write its operands into its result.
bool is_replaced(const relay::CallNode& call) {
  const OpNode& op = *call.as_op();
  const bool says_how = op.find(ops::kFusionKind) != nullptr || op.find(ops::kCallFusion) != nullptr;
  return !says_how || op.find(ops::kPlainForm) != nullptr || ops::concatenated_axis(call).has_value() ||
         relay::is_call(call, op::kLstm) || relay::is_call(call, op::kGru) || relay::is_call(call, op::kRnn);
}

CallFacts facts_of(const relay::CallNode& call) {
  CallFacts facts{.kind = ops::fusion_kind_of(call)};
  const std::vector<Type> leaves = leaves_of(call.checked_type());
  facts.is_shared_outside = leaves.size() != 1;
  if (!leaves.empty()) facts.nbytes = size_bytes_of(leaves[0], call.span);
  const ops::KeepsElements* keeps = call.as_op()->find(ops::kKeepsElements);
  const bool only_reshapes = keeps != nullptr && *keeps != ops::KeepsElements::note && call.args.size() == 1;
  if (only_reshapes && !relay::is_stateful(*call.as_op())) {
    facts.role = *keeps == ops::KeepsElements::view ? CallFacts::Role::view : CallFacts::Role::maybe_view;
  } else if (is_replaced(call) || keeps != nullptr) {
    facts.role = CallFacts::Role::unknown;
  }
  return facts;
}

class BufferFinder {
 public:
  BufferFinder(const StraightLine& line, const std::function<bool(const relay::CallNode&)>& may_be_elsewhere)
      : line_(line) {
    for (const relay::Call& call : line.calls) {
      calls_.push_back(facts_of(*call));
      calls_.back().may_be_elsewhere = may_be_elsewhere(*call);
    }
    for (size_t i = 0; i < calls_.size(); ++i) {
      for (const auto& arg : line.args[i]) {
        for (const ProgramTensor& tensor : arg) add_reader(tensor, i);
      }
    }
    for (const ProgramTensor& result : line.results) {
      if (result.kind == Kind::call) calls_[result.owner].is_shared_outside = true;
    }
    ends_.assign(calls_.size(), kNone);
    writes_.assign(calls_.size(), kNone);
  }

  // Readers come after the calls that they read.
  void find(plan::SplitProblem& problem) {
    std::vector<int32_t> buffers(calls_.size(), -1);
    for (size_t i = calls_.size(); i-- > 0;) {
      ends_[i] = end_of(i);
      writes_[i] = written_by(i);
      if (writes_[i] == i) {
        buffers[i] = static_cast<int32_t>(problem.buffers.size());
        problem.buffers.push_back({.producer = static_cast<int32_t>(i), .size_bytes = calls_[i].nbytes});
        for (const size_t holder : holders_of(i))
          problem.buffers.back().consumers.push_back(static_cast<int32_t>(holder));
      }
      if (writes_[i] != kNone) problem.nodes[i].buffer = buffers[writes_[i]];
    }
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  void add_reader(const ProgramTensor& tensor, size_t reader) {
    if (tensor.kind != Kind::call) return;
    std::vector<size_t>& readers = calls_[tensor.owner].readers;
    if (readers.empty() || readers.back() != reader) readers.push_back(reader);
  }

  // Returns how a call reads the result of another one.
  FusionKind kind_of_reading(size_t producer, size_t reader) const {
    if (calls_[reader].role == CallFacts::Role::view) return FusionKind::opaque;
    return ops::read_kind(*line_.calls[reader], calls_[reader].kind, line_.calls[producer]->checked_type());
  }

  // Returns whether no kernel computes the call together with all its readers, by the rules of fusion: of these only
  // those that hold whatever else is in the kernel.
  bool ends_its_kernel(size_t call) const {
    const FusionKind kind = calls_[call].kind;
    if (kind == FusionKind::reduction || kind == FusionKind::opaque) return true;
    if (kind == FusionKind::tuple) return false;
    return std::any_of(calls_[call].readers.begin(), calls_[call].readers.end(), [&](size_t reader) {
      if (calls_[reader].role == CallFacts::Role::unknown) return false;
      return !ops::may_share_kernel(kind, kind_of_reading(call, reader));
    });
  }

  // Returns the last call that may be in the kernel of a call and certainly ends its own; kNone where that is not
  // known. Two readers whose kernels have different ends are in no kernel with the call.
  size_t end_of(size_t call) const {
    const CallFacts& facts = calls_[call];
    if (facts.role != CallFacts::Role::kernel || facts.is_shared_outside || facts.readers.empty()) return kNone;
    if (ends_its_kernel(call)) return call;
    const size_t first = ends_[facts.readers.front()];
    bool is_one = true;
    for (const size_t reader : facts.readers) {
      if (ends_[reader] == kNone) return kNone;
      is_one = is_one && ends_[reader] == first;
    }
    return is_one ? first : call;
  }

  // Returns the call whose buffer a call writes; kNone for none.
  size_t written_by(size_t call) const {
    const size_t end = ends_[call];
    if (end == call) return !calls_[call].may_be_elsewhere && stays_inside(readers_with_views(call)) ? call : kNone;
    if (end == kNone || writes_[end] != end || calls_[call].nbytes < calls_[end].nbytes) return kNone;
    const std::vector<size_t>& readers = calls_[call].readers;
    const bool all = std::all_of(readers.begin(), readers.end(), [&](size_t reader) { return writes_[reader] == end; });
    return all ? end : kNone;
  }

  // Returns the calls that read a result or its views, and the views.
  std::vector<size_t> readers_with_views(size_t call) const {
    std::vector<size_t> readers = calls_[call].readers;
    for (size_t i = 0; i < readers.size(); ++i) {
      if (!calls_[readers[i]].may_share_operand()) continue;
      const std::vector<size_t> more = calls_[readers[i]].readers;
      readers.insert(readers.end(), more.begin(), more.end());
    }
    return readers;
  }

  // Returns whether kernels alone read a result and its views.
  bool stays_inside(const std::vector<size_t>& readers_with_views) const {
    return std::all_of(readers_with_views.begin(), readers_with_views.end(), [&](size_t reader) {
      const CallFacts& facts = calls_[reader];
      return facts.may_share_operand() ? !facts.is_shared_outside : facts.role == CallFacts::Role::kernel;
    });
  }

  // Returns the calls while which a result is in memory in any order of the calls: those that read it or its views, and
  // those on the ways from it to them. A call behind it and before a reader has the stage that both have.
  std::vector<size_t> holders_of(size_t call) {
    std::vector<size_t> holders = readers_with_views(call);
    const size_t last = *std::max_element(holders.begin(), holders.end());
    if (holders.size() == 1 || last - call > kFarthest) return holders;
    marks_.assign(last - call + 1, 0);
    const auto mark = [&](size_t one) -> uint8_t& { return marks_[one - call]; };
    mark(call) = kBehind;
    for (size_t i = call; i <= last; ++i) {
      if ((mark(i) & kBehind) == 0) continue;
      for (const size_t reader : calls_[i].readers) {
        if (reader <= last) mark(reader) |= kBehind;
      }
    }
    for (const size_t holder : holders) mark(holder) |= kReads | kBefore;
    for (size_t i = last; i-- > call + 1;) {
      const std::vector<size_t>& readers = calls_[i].readers;
      const auto leads_on = [&](size_t reader) { return reader <= last && (mark(reader) & kBefore) != 0; };
      if (std::any_of(readers.begin(), readers.end(), leads_on)) mark(i) |= kBefore;
      if (mark(i) == (kBehind | kBefore)) holders.push_back(i);
    }
    return holders;
  }

  // A result that is read later than so many calls after it is taken to be in memory while its readers run: ways are
  // looked for in linear time.
  static constexpr size_t kFarthest = 1000;
  static constexpr uint8_t kBehind = 1, kBefore = 2, kReads = 4;

  const StraightLine& line_;
  std::vector<CallFacts> calls_;
  std::vector<uint8_t> marks_;  // used by holders_of
  std::vector<size_t> ends_;    // by call: end_of
  std::vector<size_t> writes_;  // by call: written_by
};

}  // namespace

void add_buffers(const StraightLine& line, const std::function<bool(const relay::CallNode&)>& may_be_elsewhere,
                 plan::SplitProblem& problem) {
  BufferFinder(line, may_be_elsewhere).find(problem);
}

}  // namespace headrace::driver
