/** Throws a `TypeError` that names the option, its value and the remedy, unless `isGood` is true. */
export function must(isGood: boolean, name: string, value: unknown, remedy: string): asserts isGood {
  if (!isGood) throw new TypeError(`${name} is ${shown(value)}. ${remedy}`)
}

/** Throws a `TypeError` unless a function was called with an object of options. Callers without types may omit it. */
export function mustOptions(value: unknown, name: string): void {
  const remedy = 'Give an object with the options.'
  must(typeof value === 'object' && value !== null && !Array.isArray(value), name, value, remedy)
}

/** Throws a `TypeError` unless all members of an object have a known name. A mistyped one would have no effect. */
export function mustNames(name: string, value: object, known: readonly string[], what: string): void {
  for (const [member, given] of Object.entries(value))
    must(known.includes(member), `${name}.${member}`, given, `There is no such ${what}. Use ${known.join(', ')}.`)
}

/** The names of options, one member for each. The compiler finds one that is missing here. */
export type Named<T> = Readonly<Record<keyof T, true>>

/**
 * Throws a `TypeError` unless a function was called with an object whose members all have a known name. A mistyped option would have no
 * effect.
 */
export function mustKnow(value: unknown, known: Readonly<Record<string, true>>, name = 'The first argument'): void {
  mustOptions(value, name)
  for (const [member, given] of Object.entries(Object(value)))
    must(
      given === undefined || Object.hasOwn(known, member),
      member,
      given,
      `There is no such option. Use ${Object.keys(known).join(', ')}.`,
    )
}

/** Throws a `TypeError` unless an option is a whole number of at least `least`, or undefined. */
export function mustCount(name: string, value: unknown, least: number): void {
  const isCount = value === undefined || (typeof value === 'number' && Number.isInteger(value) && value >= least)
  must(isCount, name, value, `Give a whole number, at least ${least}.`)
}

/** Throws a `TypeError` unless all options are booleans or undefined. */
export function mustBooleans(values: { readonly [name: string]: unknown }): void {
  for (const [name, value] of Object.entries(values))
    must(value === undefined || typeof value === 'boolean', name, value, 'Give true or false.')
}

/** Throws a `TypeError` unless all options are functions or undefined. */
export function mustFunctions(values: { readonly [name: string]: unknown }): void {
  for (const [name, value] of Object.entries(values))
    must(value === undefined || typeof value === 'function', name, value, 'Give a function.')
}

/** Throws a `TypeError` unless all options are strings or undefined. */
export function mustTexts(values: { readonly [name: string]: unknown }): void {
  for (const [name, value] of Object.entries(values))
    must(value === undefined || typeof value === 'string', name, value, 'Give text.')
}

/** Throws a `TypeError` unless an option is a list of strings, or undefined. */
export function mustList(name: string, value: unknown, remedy: string): void {
  const isList = Array.isArray(value) && value.every((one) => typeof one === 'string')
  must(value === undefined || isList, name, value, remedy)
}

/** Throws a `TypeError` unless an option is an http or https URL. */
export function mustWebAddress(name: string, value: unknown, example: string): void {
  const isGood = typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
  must(isGood, name, value, `Give an http or https URL, such as ${example}.`)
}

const keyPattern = /^(?:svc_(?:test|live)_sk_|vat_)[\x21-\x7e]+$/

/**
 * Throws a `TypeError` unless an option has the form of an API key or a vault token. The message shows only its first
 * four characters.
 */
export function mustKey(name: string, value: unknown): void {
  const isGood = typeof value === 'string' && keyPattern.test(value)
  const visible = typeof value === 'string' && value.length > 4 ? `${value.slice(0, 4)}…` : value
  must(isGood, name, visible, 'Give a key of the form svc_test_sk_… or svc_live_sk_…, without white space.')
}

function shown(value: unknown): string {
  if (value === undefined) return 'missing'
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'bigint') return `${value}n`
  return typeof value === 'string' ? JSON.stringify(masked(value).slice(0, 80)) : jsonOf(value).slice(0, 80)
}

/** API keys, tokens of vaults, secrets of webhooks and private keys: a caller may give one as the wrong option. */
const secretPattern = /(?:svc_(?:test|live)_sk_|vat_|whsec_|0x(?=[0-9a-f]{64})|\b(?=[0-9a-f]{64}\b))[\w+/=-]+/gi

/** The text with each secret shortened to its first four characters. */
function masked(text: string): string {
  return text.replace(secretPattern, (secret) => `${secret.slice(0, 4)}…`)
}

function jsonOf(value: unknown): string {
  try {
    const json = JSON.stringify(value, (_key, member) => (typeof member === 'string' ? masked(member) : member))
    return json ?? String(value)
  } catch {
    return typeof value
  }
}
