/* A simulated NVML: the functions that torchdeck asks, answering from a plain text file.
 *
 * The file is named by SIMULATED_NVML. Each line is a key and a value: "driver 550.54.15", "cuda 12040", "gpus 8".
 * "set GPU KEY VALUE" gives a GPU (a number, or * for all) a value; the later line wins. Keys are the lower-case names
 * in the functions below. The value "error N" makes a function return NVML's error N, "hang" makes it wait for ever.
 * The names of all GPUs begin with SIMULATED, so that no report made with this can be taken for a real one.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_LINES 512
#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define INSUFFICIENT_SIZE 7
#define UNINITIALIZED 1
#define INVALID_ARGUMENT 2

typedef int Return;
typedef struct { int index; } Device;

static struct { char gpu[8]; char key[48]; char value[128]; } lines[MAX_LINES];
static int num_lines = -1;
static Device devices[64];
static Device slices[64];

static void load(void) {
    if (num_lines >= 0) return;
    num_lines = 0;
    const char *name = getenv("SIMULATED_NVML");
    FILE *file = name ? fopen(name, "r") : NULL;
    char line[256];
    while (file && num_lines < MAX_LINES && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        strcpy(lines[num_lines].gpu, "-");
        if (sscanf(line, "set %7s %47s %127[^\n]", lines[num_lines].gpu, lines[num_lines].key,
                   lines[num_lines].value) == 3
            || sscanf(line, "%47s %127[^\n]", lines[num_lines].key, lines[num_lines].value) == 2)
            num_lines++;
    }
    if (file) fclose(file);
    for (int i = 0; i < 64; i++) devices[i].index = slices[i].index = i;
}

/* The value of a key, of the machine ("-") or of one GPU; NULL where the scenario does not say. */
static const char *find(int gpu, const char *key) {
    load();
    char number[8];
    snprintf(number, sizeof number, "%d", gpu);
    for (int i = num_lines - 1; i >= 0; i--) {
        if (strcmp(lines[i].key, key)) continue;
        const char *of = lines[i].gpu;
        if (gpu < 0 ? !strcmp(of, "-") : !strcmp(of, "*") || !strcmp(of, number)) return lines[i].value;
    }
    return NULL;
}

/* 0 where a value is there; the error that stands for it otherwise. */
static Return check(const char *value) {
    if (!value) return NOT_SUPPORTED;
    if (!strncmp(value, "error ", 6)) return atoi(value + 6);
    if (!strcmp(value, "hang")) for (;;) pause();
    return 0;
}

static Return numbers(Device *device, const char *key, int count, unsigned *out) {
    const char *fault = find(device->index, "fault");
    if (fault) return check(fault);
    const char *value = find(device->index, key);
    Return rc = check(value);
    char *end = (char *)value;
    for (int i = 0; !rc && i < count; i++) out[i] = (unsigned)strtoul(end, &end, 0);
    return rc;
}

static Return number(Device *device, const char *key, unsigned *out) { return numbers(device, key, 1, out); }

EXPORT Return nvmlInit_v2(void) {
    const char *value = find(-1, "init");
    return value ? check(value) : 0;
}
EXPORT Return nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
EXPORT Return nvmlShutdown(void) { return 0; }
EXPORT const char *nvmlErrorString(Return rc) { (void)rc; return "simulated error"; }

EXPORT Return nvmlSystemGetDriverVersion(char *out, unsigned length) {
    const char *value = find(-1, "driver");
    Return rc = check(value);
    if (!rc) snprintf(out, length, "%s", value);
    return rc;
}
EXPORT Return nvmlSystemGetCudaDriverVersion_v2(int *out) {
    const char *value = find(-1, "cuda");
    Return rc = check(value);
    if (!rc) *out = atoi(value);
    return rc;
}
EXPORT Return nvmlDeviceGetCount_v2(unsigned *out) {
    const char *value = find(-1, "gpus");
    Return rc = check(value);
    if (!rc) *out = (unsigned)atoi(value);
    return rc;
}
EXPORT Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out) {
    if (index >= 64) return INVALID_ARGUMENT;
    load();
    const char *value = find((int)index, "handle");
    Return rc = value ? check(value) : 0;
    if (!rc) *out = &devices[index];
    return rc;
}
EXPORT Return nvmlDeviceGetName(Device *device, char *out, unsigned length) {
    const char *fault = find(device->index, "fault");
    if (fault) return check(fault);
    const char *value = find(device->index, "name");
    Return rc = value ? check(value) : 0;
    if (!rc) snprintf(out, length, "SIMULATED %s", value ? value : "GPU");
    return rc;
}
EXPORT Return nvmlDeviceGetCudaComputeCapability(Device *device, int *major, int *minor) {
    unsigned both[2];
    Return rc = numbers(device, "cc", 2, both);
    if (!rc) { *major = (int)both[0]; *minor = (int)both[1]; }
    return rc;
}
EXPORT Return nvmlDeviceGetMemoryInfo(Device *device, unsigned long long out[3]) {
    const char *fault = find(device->index, "fault");
    if (fault) return check(fault);
    const char *value = find(device->index, "memory"); /* total and used, in MiB */
    Return rc = check(value);
    if (!rc) {
        char *end;
        out[0] = strtoull(value, &end, 0) << 20;
        out[2] = strtoull(end, NULL, 0) << 20;
        out[1] = out[0] - out[2];
    }
    return rc;
}
typedef struct {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} Pci;
EXPORT Return nvmlDeviceGetPciInfo_v3(Device *device, Pci *out) {
    const char *fault = find(device->index, "fault");
    if (fault) return check(fault);
    memset(out, 0, sizeof *out);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", 0x10 + device->index);
    return 0;
}
EXPORT Return nvmlDeviceGetPersistenceMode(Device *device, unsigned *out) { return number(device, "persistence", out); }
EXPORT Return nvmlDeviceGetComputeMode(Device *device, unsigned *out) { return number(device, "compute_mode", out); }
EXPORT Return nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
    unsigned both[2];
    Return rc = numbers(device, "mig", 2, both);
    if (!rc) { *current = both[0]; *pending = both[1]; }
    return rc;
}
EXPORT Return nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *out) { (void)device; *out = 7; return 0; }
EXPORT Return nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned index, Device **out) {
    unsigned count = 0;
    Return rc = number(device, "mig_instances", &count);
    if (rc) return rc;
    if (index >= count) return NOT_FOUND;
    *out = &slices[index];
    return 0;
}
EXPORT Return nvmlDeviceGetEccMode(Device *device, unsigned *current, unsigned *pending) {
    Return rc = number(device, "ecc", current);
    if (!rc) *pending = *current;
    return rc;
}
EXPORT Return nvmlDeviceGetTotalEccErrors(Device *device, unsigned type, unsigned counter, unsigned long long *out) {
    unsigned value = 0;
    if (type != 1) return INVALID_ARGUMENT;
    Return rc = number(device, counter == 0 ? "ecc_volatile" : "ecc_aggregate", &value);
    *out = value;
    return rc;
}
EXPORT Return nvmlDeviceGetRetiredPagesPendingStatus(Device *device, unsigned *out) {
    return number(device, "retire_pending", out);
}
EXPORT Return nvmlDeviceGetRemappedRows(Device *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                        unsigned *failed) {
    unsigned rows[4];
    Return rc = numbers(device, "rows", 4, rows);
    if (!rc) { *corrected = rows[0]; *uncorrected = rows[1]; *pending = rows[2]; *failed = rows[3]; }
    return rc;
}
EXPORT Return nvmlDeviceGetClockInfo(Device *device, unsigned type, unsigned *out) {
    return type == 1 ? number(device, "clock", out) : NOT_SUPPORTED;
}
EXPORT Return nvmlDeviceGetMaxClockInfo(Device *device, unsigned type, unsigned *out) {
    return type == 1 ? number(device, "clock_max", out) : NOT_SUPPORTED;
}
static Return reasons(Device *device, unsigned long long *out) {
    unsigned mask = 0;
    Return rc = number(device, "reasons", &mask);
    *out = mask;
    return rc;
}
#ifndef OLD_DRIVER
EXPORT Return nvmlDeviceGetCurrentClocksEventReasons(Device *device, unsigned long long *out) {
    return reasons(device, out);
}
#endif
EXPORT Return nvmlDeviceGetCurrentClocksThrottleReasons(Device *device, unsigned long long *out) {
    return reasons(device, out);
}
EXPORT Return nvmlDeviceGetTemperature(Device *device, unsigned sensor, unsigned *out) {
    return sensor == 0 ? number(device, "temperature", out) : INVALID_ARGUMENT;
}
EXPORT Return nvmlDeviceGetPowerUsage(Device *device, unsigned *out) { return number(device, "power", out); }
EXPORT Return nvmlDeviceGetEnforcedPowerLimit(Device *device, unsigned *out) {
    return number(device, "power_limit", out);
}
EXPORT Return nvmlDeviceGetCurrPcieLinkGeneration(Device *device, unsigned *out) { return number(device, "gen", out); }
EXPORT Return nvmlDeviceGetMaxPcieLinkGeneration(Device *device, unsigned *out) {
    return number(device, "gen_max", out);
}
EXPORT Return nvmlDeviceGetCurrPcieLinkWidth(Device *device, unsigned *out) { return number(device, "width", out); }
EXPORT Return nvmlDeviceGetMaxPcieLinkWidth(Device *device, unsigned *out) { return number(device, "width_max", out); }

typedef struct {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} Process;
EXPORT Return nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, Process *out) {
    unsigned processes[2] = {0, 0}; /* how many, and MiB each; 4294967295 stands for not available */
    Return rc = numbers(device, "processes", 2, processes);
    if (rc == NOT_SUPPORTED) rc = 0;
    if (rc) return rc;
    if (*count < processes[0]) { *count = processes[0]; return INSUFFICIENT_SIZE; }
    *count = processes[0];
    for (unsigned i = 0; i < processes[0]; i++) {
        memset(&out[i], 0, sizeof out[i]);
        out[i].pid = 1000 + i;
        out[i].used = processes[1] == 4294967295u ? ~0ull : (unsigned long long)processes[1] << 20;
    }
    return 0;
}
typedef struct {
    unsigned version;
    unsigned char uuid[16];
    unsigned status, clique, state, health;
} FabricV2;
typedef struct {
    unsigned char uuid[16];
    unsigned status, clique, state;
} Fabric;
#ifndef OLD_DRIVER
EXPORT Return nvmlDeviceGetGpuFabricInfoV(Device *device, FabricV2 *out) {
    unsigned values[3]; /* state, status, mask of health */
    if (out->version != (sizeof *out | 2u << 24)) return 25;
    Return rc = numbers(device, "fabric", 3, values);
    if (!rc) { out->state = values[0]; out->status = values[1]; out->health = values[2]; }
    return rc;
}
#endif
EXPORT Return nvmlDeviceGetGpuFabricInfo(Device *device, Fabric *out) {
    unsigned values[2];
    Return rc = numbers(device, "fabric", 2, values);
    if (!rc) { out->state = values[0]; out->status = values[1]; }
    return rc;
}
EXPORT Return nvmlDeviceGetNvLinkState(Device *device, unsigned link, unsigned *active) {
    unsigned count = 0;
    Return rc = number(device, "nvlinks", &count);
    if (rc) return rc;
    if (link >= 18) return INVALID_ARGUMENT;
    *active = link < count;
    return 0;
}
