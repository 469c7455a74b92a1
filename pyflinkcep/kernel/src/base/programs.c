/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as passed from Python. No mirror in Python. */
#include "base/rules.h"
#include "base/values.h"

static int wrong_program(const char *what) {
    PyErr_Format(PyExc_ValueError, "expected %s in a program", what);
    return -1;
}

static int read_operand(Value *value, PyObject *operand) {
    if (operand == Py_None) {
        *value = (Value){.kind = VALUE_NULL};
    } else if (PyFloat_Check(operand)) {
        *value = value_float(PyFloat_AsDouble(operand));
    } else if (PyLong_Check(operand)) {
        *value = value_int(PyLong_AsLongLong(operand));
        if (PyErr_Occurred()) return -1;
    } else if (PyTuple_Check(operand)) {
        long long units;
        int scale;
        if (!PyArg_ParseTuple(operand, "Li", &units, &scale)) return -1;
        if (scale < 0 || scale > MOST_SCALE) return wrong_program("a decimal's digits");
        *value = value_units(units, (uint8_t)scale);
    } else {
        *value = (Value){.as.text = Py_NewRef(operand), .kind = VALUE_TEXT};
    }
    return 0;
}

int program_read(Program *program, PyObject *code) {
    Py_ssize_t size = PyTuple_Size(code);
    program->code = allocate_zeros(size, sizeof(Instruction));
    program->stack = allocate_zeros(size + 1, sizeof(Value));
    if (program->code == NULL || program->stack == NULL) return -1;
    program->size = size;
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *operand;
        Instruction *instruction = &program->code[i];
        if (!PyArg_ParseTuple(PyTuple_GetItem(code, i), "iO", &instruction->opcode, &operand) ||
            read_operand(&instruction->operand, operand) < 0)
            return -1;
        if (instruction->opcode < 0 || instruction->opcode >= OPCODES)
            return wrong_program("operations");
    }
    return 0;
}

/* Return how many values an instruction takes off the stack, which it need not put back. */
static int32_t operands_of(int32_t opcode) {
    if (opcode >= OP_JUMP_IF_FALSE && opcode <= OP_JUMP) return opcode != OP_JUMP;
    return opcode == OP_CHOOSE ? 3 : OPERANDS_OF[opcode];
}

/* Return how many values more an instruction leaves on the stack; `jumped` if it leads away. */
static int32_t growth_of(int32_t opcode, bool jumped) {
    switch (opcode) {
    case OP_JUMP_IF_FALSE:
    case OP_JUMP_IF_TRUE:
    case OP_JUMP: return 0;
    case OP_JUMP_IF_NOT_NULL: return jumped ? 0 : -1;
    case OP_JUMP_UNLESS: return -1;
    default: return 1 - operands_of(opcode);
    }
}

/* Find whether each instruction has its operands on whatever way, and one value is left. */
static bool is_balanced(const Program *program, int32_t *depths) {
    for (Py_ssize_t i = 1; i <= program->size; i++) depths[i] = -1; /* not reached */
    for (Py_ssize_t i = 0; i < program->size; i++) {
        int32_t opcode = program->code[i].opcode, depth = depths[i];
        bool jumps = opcode >= OP_JUMP_IF_FALSE && opcode <= OP_JUMP;
        bool is_known =
            jumps || opcode <= OP_NULL || opcode == OP_DECIMAL || operands_of(opcode) > 0;
        if (!is_known || depth < operands_of(opcode)) return false;
        Py_ssize_t next[2] = {
            i + 1, jumps ? i + 1 + (Py_ssize_t)program->code[i].operand.as.i : -1};
        for (int way = opcode == OP_JUMP; way <= jumps; way++) {
            int32_t after = depth + growth_of(opcode, way == 1);
            if (depths[next[way]] >= 0 && depths[next[way]] != after) return false;
            depths[next[way]] = after;
        }
    }
    return program->size == 0 || depths[program->size] == 1;
}

/* Find whether constants are what their instructions say. */
static bool has_constants(const Program *program) {
    for (Py_ssize_t i = 0; i < program->size; i++) {
        Value operand = program->code[i].operand;
        switch (program->code[i].opcode) {
        case OP_INT:
            if (operand.kind != VALUE_INT) return false;
            break;
        case OP_FLOAT:
            if (operand.kind != VALUE_FLOAT) return false;
            break;
        case OP_TEXT:
            if (operand.kind != VALUE_TEXT || !PyUnicode_Check(operand.as.text)) return false;
            break;
        case OP_INT_TO_DECIMAL:
            if (operand.kind != VALUE_INT || operand.as.i < 0 || operand.as.i > MOST_SCALE)
                return false;
            break;
        case OP_DECIMAL:
            if (operand.kind != VALUE_TEXT && operand.kind != VALUE_UNITS) return false;
            break;
        case OP_LIKE:
        case OP_UNITS:
        case OP_DECIMAL_TO_FLOAT:
        case OP_DECIMAL_TO_INT:
        case OP_LISTED:
        case OP_AGGREGATE:
        case OP_FIT: /* functions of Python, apart from the constant */
            if (operand.kind != VALUE_TEXT) return false;
            break;
        default: break;
        }
    }
    return true;
}

int program_check(const Program *program, Values *values) {
    for (Py_ssize_t i = 0; i < program->size; i++) {
        int32_t opcode = program->code[i].opcode;
        int64_t operand = program->code[i].operand.as.i;
        bool jumps = opcode >= OP_JUMP_IF_FALSE && opcode <= OP_JUMP;
        if (opcode != OP_FIELD && opcode != OP_SLOT && !jumps) continue;
        if (program->code[i].operand.kind != VALUE_INT || operand < 0)
            return wrong_program("a place");
        if (opcode == OP_SLOT && operand >= values->slot_count) return wrong_program("a slot");
        if (jumps && operand > program->size - i - 1) return wrong_program("a jump within it");
        if (opcode == OP_FIELD && operand >= values->fields_read)
            values->fields_read = (Py_ssize_t)operand + 1;
    }
    if (!has_constants(program)) return wrong_program("constants of their types");
    int32_t *depths = allocate_zeros(program->size + 1, sizeof(int32_t));
    if (depths == NULL) return -1;
    bool balanced = is_balanced(program, depths);
    release_memory(depths);
    return balanced ? 0 : wrong_program("operands for each operation, and one result,");
}

/* Whether an instruction has objects as a rule, and not only for decimals of many digits. */
static bool instruction_needs_python(const Instruction *instruction) {
    if (instruction->operand.kind != VALUE_TEXT) return false;
    switch (instruction->opcode) {
    case OP_ADD:
    case OP_ADD_PASSING:
    case OP_SUB:
    case OP_MUL: return false;
    default: return true;
    }
}

bool program_needs_python(const Program *program) {
    for (Py_ssize_t i = 0; i < program->size; i++)
        if (instruction_needs_python(&program->code[i])) return true;
    return false;
}

bool values_need_python(const Values *values) {
    for (Py_ssize_t i = 0; i < values->fields; i++)
        if (values->columns[i].texts != NULL) return true;
    for (Py_ssize_t i = 0; i < values->slot_count; i++)
        if (values->slots[i].function == SLOT_LIST) return true;
    return false;
}

void program_free(Program *program) {
    for (Py_ssize_t i = 0; i < program->size; i++) value_drop(program->code[i].operand);
    release_memory(program->code);
    release_memory(program->stack);
}

/* Whether a slot says which other slots its function reads. */
static bool has_sources(const Values *values, const Slot *slot) {
    switch (slot->function) {
    case SLOT_LAST: return slot->offset <= 0 || slot->source >= 0;
    case SLOT_FIRST:
    case SLOT_MEAN: return slot->source >= 0;
    case SLOT_MOMENT: return slot->source >= 0 && values->slots[slot->source].source >= 0;
    case SLOT_LIST: return slot->is_float && slot->field >= 0;
    default: return slot->function >= SLOT_COUNT && slot->function <= SLOT_MAX;
    }
}

int live_read(Live *live, PyObject *slots) {
    Py_ssize_t count = PyTuple_Size(slots);
    if (count < 0) return -1;
    live->slots = allocate_zeros(count, sizeof(int32_t));
    if (live->slots == NULL) return -1;
    live->size = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        long slot = PyLong_AsLong(PyTuple_GetItem(slots, i));
        if (PyErr_Occurred()) return -1;
        if (slot != (int32_t)slot) {
            PyErr_SetString(PyExc_ValueError, "expected known slots");
            return -1;
        }
        live->slots[i] = (int32_t)slot;
    }
    return 0;
}

int values_read_slots(Values *values, PyObject *slots) {
    Py_ssize_t count = PyTuple_Size(slots);
    values->slots = allocate_zeros(count, sizeof(Slot));
    if (values->slots == NULL) return -1;
    values->slot_count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        Slot *slot = &values->slots[i];
        long long offset;
        int is_float;
        if (!PyArg_ParseTuple(
                PyTuple_GetItem(slots, i), "iiiiLp", &slot->function, &slot->stage, &slot->field,
                &slot->source, &offset, &is_float))
            return -1;
        slot->offset = offset;
        slot->is_float = is_float;
        if (slot->source < -1 || slot->source >= count || slot->field < -1) {
            PyErr_SetString(PyExc_ValueError, "expected slots that read other slots and fields");
            return -1;
        }
        if (slot->field >= values->fields_read) values->fields_read = slot->field + 1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!has_sources(values, &values->slots[i])) {
            PyErr_SetString(PyExc_ValueError, "expected known functions, and slots that they read");
            return -1;
        }
    return 0;
}
