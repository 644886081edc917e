#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "bindings.h"
#include "metrics/bandwidth.h"
#include "metrics/contention.h"
#include "metrics/counters.h"
#include "metrics/energy.h"
#include "metrics/observer.h"
#include "metrics/peak.h"
#include "process/float_mode.h"

namespace py = pybind11;

namespace timetrial::bindings {
namespace {

// As OSError with errno, so that ESRCH becomes ProcessLookupError and EACCES PermissionError.
template <typename Call>
auto with_os_errors(Call call) {
    try {
        return call();
    } catch (const std::system_error& error) {
        const py::object os_error =
            py::reinterpret_borrow<py::object>(PyExc_OSError)(error.code().value(), error.what());
        PyErr_SetObject(py::type::of(os_error).ptr(), os_error.ptr());
        throw py::error_already_set();
    }
}

using PathAndKind = py::typing::Tuple<py::str, py::str>;

py::typing::List<PathAndKind> libraries(const Observer& observer) {
    py::typing::List<PathAndKind> found;
    const py::object decode = py::module_::import("os").attr("fsdecode");
    for (const MappedLibrary& library : with_os_errors([&] { return observer.libraries(); })) {
        found.append(py::make_tuple(decode(py::bytes(library.path)), library.kind));
    }
    return found;
}

void register_counters(py::module_& module) {
    py::class_<CounterSum>(module, "CounterSum")
        .def_readonly("name", &CounterSum::name)
        .def_readonly("is_hardware", &CounterSum::is_hardware)
        .def_readonly("error", &CounterSum::error)
        .def_readonly("count", &CounterSum::count)
        .def_readonly("enabled_ns", &CounterSum::enabled_ns)
        .def_readonly("running_ns", &CounterSum::running_ns);
    py::class_<Counters>(module, "Counters")
        .def(py::init([](const std::vector<pid_t>& tids) { return std::make_unique<Counters>(tids); }),
             py::arg("tids"))
        .def("read", &Counters::read)
        .def("close", &Counters::close);
    py::class_<EnergyZone>(module, "EnergyZone")
        .def_readonly("zone", &EnergyZone::zone)
        .def_readonly("name", &EnergyZone::name)
        .def_readonly("error", &EnergyZone::error)
        .def_readonly("energy_uj", &EnergyZone::energy_uj)
        .def_readonly("range_uj", &EnergyZone::range_uj);
    module.def(
        "read_energy",
        [](const std::string& root) { return with_os_errors([&] { return read_energy(root); }); },
        py::arg("root"));
}

}  // namespace

void register_metrics(py::module_& module) {
    register_counters(module);
    py::class_<ThreadObservation>(module, "ThreadObservation")
        .def_readonly("pid", &ThreadObservation::pid)
        .def_readonly("tid", &ThreadObservation::tid)
        .def_property_readonly(
            "name",
            [](const ThreadObservation& thread) {
                return py::reinterpret_steal<py::str>(  // any bytes may be in a thread's name
                    PyUnicode_DecodeUTF8(thread.name.data(), static_cast<py::ssize_t>(thread.name.size()),
                                         "replace"));
            })
        .def_readonly("cpu_ns", &ThreadObservation::cpu_ns)
        .def_readonly("wait_ns", &ThreadObservation::wait_ns)
        .def_readonly("allowed_cpus", &ThreadObservation::allowed_cpus)
        .def_readonly("nice", &ThreadObservation::nice)
        .def_readonly("policy", &ThreadObservation::policy)
        .def_readonly("voluntary_switches", &ThreadObservation::voluntary_switches)
        .def_readonly("involuntary_switches", &ThreadObservation::involuntary_switches);
    py::class_<Observation>(module, "Observation")
        .def_readonly("time_ns", &Observation::time_ns)
        .def_readonly("cpu_ns", &Observation::cpu_ns)
        .def_readonly("rss_bytes", &Observation::rss_bytes)
        .def_readonly("peak_rss_bytes", &Observation::peak_rss_bytes)
        .def_readonly("anonymous_bytes", &Observation::anonymous_bytes)
        .def_readonly("file_rss_bytes", &Observation::file_rss_bytes)
        .def_readonly("shared_rss_bytes", &Observation::shared_rss_bytes)
        .def_readonly("minor_faults", &Observation::minor_faults)
        .def_readonly("major_faults", &Observation::major_faults)
        .def_readonly("processes", &Observation::processes)
        .def_readonly("stopped", &Observation::stopped)
        .def_readonly("threads", &Observation::threads);
    py::class_<Observer>(module, "Observer")
        .def(py::init<pid_t, pid_t>(), py::arg("pid"), py::arg("reaper") = 0)
        .def(
            "read",
            [](const Observer& observer, bool once) {
                return with_os_errors(
                    [&] { return observer.read(once ? Counting::kOnce : Counting::kInEach); });
            },
            py::arg("once") = false)
        .def("migrations", &Observer::migrations)
        .def("reset_peak", [](const Observer& observer) { with_os_errors([&] { observer.reset_peak(); }); })
        .def("libraries", &libraries);
    module.def("tree_cpu_ns", &tree_cpu_ns, py::arg("pid"));
    py::class_<Peak>(module, "Peak")
        .def_readonly("isa", &Peak::isa)
        .def_readonly("threads", &Peak::threads)
        .def_readonly("flops_per_s", &Peak::flops_per_s);
    module.def(
        "float_mode_of",
        [](pid_t tid) { return float_mode_word(with_os_errors([&] { return float_mode_of(tid); })); },
        py::arg("tid"));
    module.def("float_mode", &float_mode);
    module.def("set_float_mode", &set_float_mode, py::arg("mode"));
    py::class_<Bandwidth>(module, "Bandwidth")
        .def_readonly("threads", &Bandwidth::threads)
        .def_readonly("bytes", &Bandwidth::bytes)
        .def_readonly("bytes_per_s", &Bandwidth::bytes_per_s)
        .def_readonly("is_streaming", &Bandwidth::is_streaming);
    module.def("measure_bandwidth", &measure_bandwidth, py::arg("threads"), py::arg("seconds"),
               py::arg("bytes"), py::call_guard<py::gil_scoped_release>());
    py::class_<Reads>(module, "Reads")
        .def_readonly("bytes", &Reads::bytes)
        .def_readonly("is_chase", &Reads::is_chase)
        .def_readonly("ns_per_line", &Reads::ns_per_line);
    module.def("read_evenly", &read_evenly, py::arg("sizes"), py::arg("seconds"),
               py::call_guard<py::gil_scoped_release>());
    module.def("measure_peak_flops", &measure_peak_flops, py::arg("threads"), py::arg("seconds"),
               py::call_guard<py::gil_scoped_release>());
}

}  // namespace timetrial::bindings
