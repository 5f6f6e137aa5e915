/**
 * Returns a copy of `value` with each `{ "$ref": "#/…" }` replaced by the value at that place in `root`. Members beside
 * the reference override those of the value. For JSON Schemas and OpenAPI documents without recursion. References for
 * which `isMeant` is false stay. Throws if a reference points to nothing.
 *
 * @example
 * const document = { $defs: { Id: { type: 'string' } }, id: { $ref: '#/$defs/Id' } }
 * withoutReferences(document.id, document) // { type: 'string' }
 */
export function withoutReferences(
  value: unknown,
  root: unknown,
  isMeant: (reference: string) => boolean = () => true,
): unknown {
  if (Array.isArray(value)) return value.map((inner) => withoutReferences(inner, root, isMeant))
  if (typeof value !== 'object' || value === null) return value
  const { $ref, ...beside } = value as { readonly $ref?: unknown }
  if (typeof $ref !== 'string' || !isMeant($ref))
    return mapped(value, (inner) => withoutReferences(inner, root, isMeant))
  const named = withoutReferences(referred($ref, root), root, isMeant)
  return { ...Object(named), ...mapped(beside, (inner) => withoutReferences(inner, root, isMeant)) }
}

function mapped(value: object, change: (inner: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, change(inner)]))
}

/** Returns the value that a reference within the document points to: a JSON Pointer (RFC 6901) after `#`. */
function referred(reference: string, root: unknown): unknown {
  const names = reference.replace(/^#\//, '').split('/')
  const found = names.reduce<unknown>(
    (at, name) =>
      typeof at === 'object' && at !== null
        ? Reflect.get(at, decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~'))
        : undefined,
    root,
  )
  if (found === undefined) throw new Error(`${reference} is not in this document`)
  return found
}
