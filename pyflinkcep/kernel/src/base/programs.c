/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as passed from Python. No mirror in Python. */
#include "base/rules.h"
#include "base/values.h"

static int read_operand(Value *value, PyObject *operand) {
    if (operand == Py_None) {
        *value = (Value){.kind = VALUE_NULL};
    } else if (PyFloat_Check(operand)) {
        *value = value_float(PyFloat_AsDouble(operand));
    } else if (PyLong_Check(operand)) {
        *value = value_int(PyLong_AsLongLong(operand));
        if (PyErr_Occurred()) return -1;
    } else {
        *value = (Value){{.text = Py_NewRef(operand)}, VALUE_TEXT};
    }
    return 0;
}

static int wrong_program(const char *what) {
    PyErr_Format(PyExc_ValueError, "expected %s in a program", what);
    return -1;
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

/* Refuse a program that reads slots that are not there, or leads out of itself. */
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
    return 0;
}

void program_free(Program *program) {
    for (Py_ssize_t i = 0; i < program->size; i++) value_drop(program->code[i].operand);
    release_memory(program->code);
    release_memory(program->stack);
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
    return 0;
}
