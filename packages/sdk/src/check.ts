/** Throws a `TypeError` that names the option, its value and the remedy, unless the option is good. */
export function must(isGood: boolean, name: string, value: unknown, remedy: string): asserts isGood {
  if (!isGood) throw new TypeError(`${name} is ${shown(value)}. ${remedy}`)
}

/** The options of a function that a caller without types may have called without any. */
export function mustOptions(value: unknown, name: string): void {
  const remedy = 'Give an object with the options.'
  must(typeof value === 'object' && value !== null && !Array.isArray(value), name, value, remedy)
}

/** An option that is a whole number, or left out. */
export function mustCount(name: string, value: unknown, least: number): void {
  const isCount = value === undefined || (typeof value === 'number' && Number.isInteger(value) && value >= least)
  must(isCount, name, value, `Give a whole number, at least ${least}.`)
}

/** Options that are true or false, or left out. */
export function mustBooleans(values: { readonly [name: string]: unknown }): void {
  for (const [name, value] of Object.entries(values))
    must(value === undefined || typeof value === 'boolean', name, value, 'Give true or false.')
}

/** Options that are functions, or left out. */
export function mustFunctions(values: { readonly [name: string]: unknown }): void {
  for (const [name, value] of Object.entries(values))
    must(value === undefined || typeof value === 'function', name, value, 'Give a function.')
}

/** Options that are text, or left out. */
export function mustTexts(values: { readonly [name: string]: unknown }): void {
  for (const [name, value] of Object.entries(values))
    must(value === undefined || typeof value === 'string', name, value, 'Give text.')
}

/** An option that is a list of texts, or left out. */
export function mustList(name: string, value: unknown, remedy: string): void {
  const isList = Array.isArray(value) && value.every((one) => typeof one === 'string')
  must(value === undefined || isList, name, value, remedy)
}

/** An http or https URL. */
export function mustWebAddress(name: string, value: unknown, example: string): void {
  const isGood = typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
  must(isGood, name, value, `Give an http or https URL, such as ${example}.`)
}

const keyPattern = /^(?:svc_(?:test|live)_sk_|vat_)[\x21-\x7e]+$/

/** The key of the API, or the token of a vault. A message shows its first four characters only. */
export function mustKey(name: string, value: unknown): void {
  const isGood = typeof value === 'string' && keyPattern.test(value)
  const visible = typeof value === 'string' && value.length > 4 ? `${value.slice(0, 4)}…` : value
  must(isGood, name, visible, 'Give a key of the form svc_test_sk_… or svc_live_sk_…, without white space.')
}

function shown(value: unknown): string {
  if (value === undefined) return 'missing'
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'bigint') return `${value}n`
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : jsonOf(value).slice(0, 80)
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return typeof value
  }
}
