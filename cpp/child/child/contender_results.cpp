// The commands that give numbers away: predictions, test scores, tensors.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "contender.h"
#include "metrics/score.h"
#include "words.h"

namespace timetrial {
namespace {

// What the loss of the prediction holds it against.
const std::int64_t* labels_of(const Network& network, const Batch& batch) {
    const tt_tensor& target = batch.tensors()[network.node(network.output_loss()).inputs[1]];
    if (target.dtype != TT_I64)
        throw BackendError(TT_UNSUPPORTED, "the network predicts no classes, so it has no accuracy");
    return static_cast<const std::int64_t*>(target.data);
}

}  // namespace

Contender::Json Contender::write_outputs(const std::string& file) {
    if (Stream* data = current_stream()) {
        Gather first = data->gather();
        first.next = 0;
        first.fill();
    }
    const std::vector<float> predictions = session_->predict();
    write_npy(file, TT_F32, network_.node(network_.output()).shape, predictions.data());
    return Json::object();
}

// What the timed verb itself left, not what another pass would compute.
Contender::Json Contender::write_predicted(const std::string& file) {
    const std::string& output = network_.node(network_.output()).name;
    for (const TensorInfo& tensor : session_->tensors(TT_ACTIVATION)) {
        if (tensor.name != output) continue;
        std::vector<char> values(tensor.bytes());
        session_->context().read_tensor(tensor, values.data());
        write_npy(file, tensor.dtype, tensor.shape, values.data());
        return Json::object();
    }
    throw BackendError(TT_FAILED, "the backend does not show the activation '" + output +
                                      "', so nobody can see what its steps predict");
}

Contender::Json Contender::evaluate(const std::string& file) {
    Stream* test = stream("test");
    if (test == nullptr)
        throw BackendError(TT_UNSUPPORTED, "the backend reads no data, so it has no accuracy");
    const bool squared = network_.node(network_.output_loss()).kind == "squared_error";
    Score score(squared ? LossKind::kSquaredError : LossKind::kSoftmaxCrossEntropy,
                static_cast<std::size_t>(network_.classes()));
    Gather gather = test->gather();
    const std::int64_t* labels = labels_of(network_, session_->batch());
    // Of a prediction for each step all would be gigabytes for a language: its classes are enough.
    const Shape& shape = network_.node(network_.output()).shape;
    const auto classes = static_cast<std::size_t>(network_.classes());
    const bool of_steps = shape.size() > 2;
    const std::size_t rows = of_steps ? static_cast<std::size_t>(shape[1]) : 1;
    std::vector<float> all;
    std::vector<std::int64_t> answers;
    std::size_t seen = 0;
    for (gather.next = 0; gather.next < gather.batches; ++gather.next) {
        gather.fill();
        const std::vector<float> predictions = session_->predict();
        // The last batch is filled up with samples that were scored already.
        const std::size_t fresh = std::min(gather.batch_size, test->samples() - seen);
        seen += fresh;
        score.add(predictions.data(), labels, fresh * rows);
        const auto end = predictions.begin() + static_cast<std::ptrdiff_t>(fresh * rows * classes);
        if (!of_steps) all.insert(all.end(), predictions.begin(), end);
        for (auto row = predictions.begin(); of_steps && row != end;
             row += static_cast<std::ptrdiff_t>(classes))
            answers.push_back(Score::answer(&*row, classes));
    }
    const auto samples = static_cast<std::int64_t>(seen);
    if (of_steps)
        write_npy(file, TT_I64, {samples, shape[1]}, answers.data());
    else
        write_npy(file, TT_F32, {samples, network_.classes()}, all.data());
    return {{"accuracy", score.accuracy()}, {"loss", score.loss()}, {"samples", score.samples()}};
}

Contender::Json Contender::dump(const std::string& role, const std::string& folder) {
    if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
        throw std::system_error(errno, std::generic_category(), "cannot make the folder '" + folder + "'");
    }
    Json names = Json::array();
    std::vector<char> values;
    for (const TensorInfo& tensor : session_->tensors(parse_role(role))) {
        if (tensor.name.find('/') != std::string::npos) {
            throw BackendError(TT_FAILED,
                               "tensor '" + tensor.name + "' cannot be a file: its name has a '/'");
        }
        values.resize(tensor.bytes());
        session_->context().read_tensor(tensor, values.data());
        write_npy(folder + "/" + tensor.name + ".npy", tensor.dtype, tensor.shape, values.data());
        names.push_back(tensor.name);
    }
    return {{"tensors", names}};
}

}  // namespace timetrial
