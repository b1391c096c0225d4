// SPDX-License-Identifier: GPL-2.0
/*
 * Offsets of members of types that no header declares, from the BTF of the kernel and of its
 * modules, which their builds have made. The module reads it itself. Offsets from the module's
 * loader might be out of date, or of another kernel.
 */
#include <linux/btf.h>
#include <linux/mm.h>

#include "lissom_ple.h"

/* Return the number of bytes behind a type's struct btf_type; -1: unknown kind. */
static long extra(const struct btf_type *t)
{
	u32 count = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return count * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return count * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return count * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return count * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return count * sizeof(struct btf_var_secinfo);
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	}
	return -1;
}

/* Return the type behind this one, or NULL at the end, or if the file is damaged. t NULL: the first
 * one. */
static const struct btf_type *next(const struct btf_file *file, const struct btf_type *t)
{
	const void *end = file->types + file->types_size;
	const void *at = t ? (const void *)(t + 1) + extra(t) : file->types;

	if (end - at < (long)sizeof(struct btf_type))
		return NULL;
	t = at;
	if (extra(t) < 0 || end - at < (long)sizeof(struct btf_type) + extra(t))
		return NULL;
	return t;
}

static const struct btf_type *type_of(const struct btf_file *file, u32 id)
{
	const struct btf_type *t = NULL;
	u32 i;

	if (file->base && id < file->first_type)
		return type_of(file->base, id);
	if (id < file->first_type)
		return NULL;
	for (i = file->first_type; (t = next(file, t)); i++)
		if (i == id)
			return t;
	return NULL;
}

static const char *name_at(const struct btf_file *file, u32 offset)
{
	if (file->base && offset < file->first_string)
		return name_at(file->base, offset);
	if (offset < file->first_string || offset - file->first_string >= file->strings_size)
		return "";
	return file->strings + (offset - file->first_string);
}

static bool check_header(struct btf_file *file)
{
	const struct btf_header *header = (const void *)file->data;
	u64 types, strings;

	if (file->size < sizeof(*header) || header->magic != BTF_MAGIC ||
	    header->version != BTF_VERSION || header->hdr_len < sizeof(*header))
		return false;
	types = (u64)header->hdr_len + header->type_off;
	strings = (u64)header->hdr_len + header->str_off;
	if (types + header->type_len > file->size || strings + header->str_len > file->size ||
	    !header->str_len)
		return false;
	file->types = file->data + types;
	file->types_size = header->type_len;
	file->strings = file->data + strings;
	file->strings_size = header->str_len;
	return !file->strings[file->strings_size - 1];
}

int btf_open(struct btf_file *file, const char *name, const struct btf_file *base)
{
	const struct btf_type *t = NULL;
	char path[64];

	*file = (struct btf_file){ .base = base, .first_type = 1 };
	snprintf(path, sizeof(path), "/sys/kernel/btf/%s", name);
	file->data = read_file(path, &file->size);
	if (IS_ERR(file->data)) {
		pr_fail("cannot read %s (%ld): this kernel or module has no BTF\n", path,
			PTR_ERR(file->data));
		return -EOPNOTSUPP;
	}
	if (!check_header(file)) {
		pr_fail("%s is no BTF that is known here\n", path);
		btf_close(file);
		return -EOPNOTSUPP;
	}
	if (base) {
		file->first_type = base->first_type + base->type_count;
		file->first_string = base->first_string + base->strings_size;
	}
	while ((t = next(file, t)))
		file->type_count++;
	return 0;
}

void btf_close(struct btf_file *file)
{
	kvfree(file->data);
	file->data = NULL;
}

static const struct btf_type *without_qualifiers(const struct btf_file *file, u32 id)
{
	const struct btf_type *t;
	int depth;

	for (depth = 0; depth < 16 && (t = type_of(file, id)); depth++) {
		switch (BTF_INFO_KIND(t->info)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_TYPE_TAG:
			id = t->type;
			continue;
		}
		return t;
	}
	return NULL;
}

static bool is_as_expected(const struct btf_file *file, u32 id, enum member_kind kind, u32 size,
			   const char *target)
{
	const struct btf_type *t = without_qualifiers(file, id);
	u32 is = t ? BTF_INFO_KIND(t->info) : BTF_KIND_UNKN;

	switch (kind) {
	case MEMBER_ANY:
		return true;
	case MEMBER_INTEGER:
		return is == BTF_KIND_INT && t->size == size;
	case MEMBER_STRUCT:
		return is == BTF_KIND_STRUCT && t->size == size;
	case MEMBER_POINTER:
		if (is != BTF_KIND_PTR)
			return false;
		/* If the file does not need more, it may only have the name of the struct. */
		t = without_qualifiers(file, t->type);
		is = t ? BTF_INFO_KIND(t->info) : BTF_KIND_UNKN;
		return (is == BTF_KIND_STRUCT || is == BTF_KIND_FWD) &&
		       !strcmp(name_at(file, t->name_off), target);
	}
	return false;
}

static const struct btf_type *find_struct(const struct btf_file *file, const char *name)
{
	const struct btf_type *t = NULL;

	for (; file; file = file->base, t = NULL)
		while ((t = next(file, t)))
			if (BTF_INFO_KIND(t->info) == BTF_KIND_STRUCT &&
			    !strcmp(name_at(file, t->name_off), name))
				return t;
	return NULL;
}

int btf_member(const struct btf_file *file, const char *type, const char *member,
	       enum member_kind kind, u32 size, const char *target)
{
	const struct btf_type *t = find_struct(file, type);
	const struct btf_member *m;
	u32 i, bits;

	if (!t) {
		pr_fail("this kernel's KVM has no struct %s\n", type);
		return -EOPNOTSUPP;
	}
	m = (const void *)(t + 1);
	for (i = 0; i < BTF_INFO_VLEN(t->info); i++, m++)
		if (!strcmp(name_at(file, m->name_off), member))
			break;
	if (i == BTF_INFO_VLEN(t->info)) {
		pr_fail("this kernel's struct %s has no member %s\n", type, member);
		return -EOPNOTSUPP;
	}
	bits = BTF_INFO_KFLAG(t->info) ? BTF_MEMBER_BIT_OFFSET(m->offset) : m->offset;
	if ((BTF_INFO_KFLAG(t->info) && BTF_MEMBER_BITFIELD_SIZE(m->offset)) || bits % 8 ||
	    !is_as_expected(file, m->type, kind, size, target)) {
		pr_fail("member %s of this kernel's struct %s has another type than is known "
			"here\n",
			member, type);
		return -EOPNOTSUPP;
	}
	if (size > t->size || bits / 8 > t->size - size ||
	    (kind >= MEMBER_INTEGER && kind <= MEMBER_POINTER && bits / 8 % size)) {
		pr_fail("member %s of this kernel's struct %s is where no such member can be\n",
			member, type);
		return -EOPNOTSUPP;
	}
	return bits / 8;
}
