const depthMax = 64

/**
 * Serializes a JSON value to its canonical text (RFC 8785, JCS): members sorted by UTF-16 code units, numbers and
 * strings as ECMAScript writes them, no white space. Throws a `TypeError` for values that JSON cannot represent
 * (undefined, bigint, NaN, infinity, functions, objects with a class, unpaired surrogates) and for nesting deeper than
 * 64: a signature must not cover anything but the value itself.
 *
 * @example
 * canonicalJson({ b: 1, a: [true, 'x'] }) // '{"a":[true,"x"],"b":1}'
 */
export function canonicalJson(value: unknown): string {
  return write(value, 0)
}

function write(value: unknown, depth: number): string {
  if (depth > depthMax) throw new TypeError('nested too deeply for canonical JSON')
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return writeNumber(value)
  if (typeof value === 'string') return writeText(value)
  if (Array.isArray(value)) return `[${value.map((item) => write(item, depth + 1)).join(',')}]`
  if (typeof value === 'object') return writeObject(value, depth)
  throw new TypeError(`canonical JSON cannot contain a ${typeof value}`)
}

function writeNumber(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError('canonical JSON cannot contain NaN or infinity')
  return String(value === 0 ? 0 : value)
}

/** Printable ASCII without quotation marks and backslashes: JSON writes it as it is. */
const plainText = /^[ !#-[\]-~]*$/

function writeText(text: string): string {
  if (plainText.test(text)) return `"${text}"`
  if (!text.isWellFormed()) throw new TypeError('canonical JSON cannot contain an unpaired surrogate')
  return JSON.stringify(text)
}

function writeObject(value: object, depth: number): string {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null)
    throw new TypeError('canonical JSON can contain plain objects only')
  let members = ''
  for (const name of Object.keys(value).sort()) {
    const member: unknown = Reflect.get(value, name)
    members += `${members === '' ? '' : ','}${writeText(name)}:${write(member, depth + 1)}`
  }
  return `{${members}}`
}
