// Energy that processors and memory have used, by their own counters: RAPL, as powercap offers it in /sys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace timetrial {

// A part of the machine, used by whoever runs on it. Its counter begins anew behind `range_uj`.
struct EnergyZone {
    std::string zone;  // "intel-rapl:0:1"; processors of AMD have that name too
    std::string name;  // "package-0", "dram", "core", ...
    int error = 0;     // why it cannot be read: errno; 0: it can
    std::uint64_t energy_uj = 0;
    std::uint64_t range_uj = 0;
};

// Those of this machine, by name of the zone. `root`: where /sys lies. std::system_error: nobody offers any.
// The same counters come a second time as "intel-rapl-mmio"; they are left out.
std::vector<EnergyZone> read_energy(const std::string& root = "/");

}  // namespace timetrial
