import { hash } from 'node:crypto'
import { privateKeyToAddress } from 'viem/accounts'

/** The moment at which every recorded example happens. */
const recordedAt = Date.parse('2026-11-22T12:00:00Z')
const dayMs = 86_400_000
/** No run takes longer. */
const runMinutesMax = 10

/** The last characters of the ids of one kind: the first id is that of the schemas' examples. */
const lastOfId = 'qrstvwxyz0123456789abcdefghjkmnp'

/** The values that differ between runs, most specific pattern first. */
const varying = {
  json: /\beyJ[\w+/-]{20,}={0,2}/,
  id: /\b[a-z]{2,4}_[0-7][0-9a-hjkmnp-tv-z]{25}\b/,
  signature: /\b0x[0-9a-fA-F]{130}\b/,
  hash: /\b(?:0x)?[0-9a-f]{64}\b/,
  address: /\b0x[0-9a-fA-F]{40}\b/,
  instant: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/,
  seconds: /(?<=^|expires=)\d{10}(?=$|&)/,
  sealKey: /\bseal-[0-9a-f]{16}\b/,
  email: /\b[0-9a-f]{12}@example\.com\b/,
  secret: /\bwhsec_[\w+/]{20,}={0,2}/,
  random: /(?<![\w-])(?:svc_(?:test|live)_sk_|stl_|vat_)?[\w-]{22,}/,
  fee: /(?<=^)0\.\d{9,}$/,
} as const
type Kind = keyof typeof varying
const kinds = Object.keys(varying) as readonly Kind[]
const anyKind = new RegExp(kinds.map((kind) => `(?<${kind}>${varying[kind].source})`).join('|'), 'g')

/**
 * Replaces what differs between two runs by values of the same form: ids, instants, addresses, hashes, signatures, keys and tokens. Equal
 * values stay equal within one normalizer. Instants keep their distance from `now`, when the response came, in minutes. Addresses in `constants` stay.
 */
export function normalizer(now: number, constants: ReadonlySet<string>): (value: unknown, member?: string) => unknown {
  const seen = new Map<string, string[]>()
  /** The place of this value among those of its kind, by their first occurrence. */
  const placeOf = (kind: string, value: string): number => {
    const values = seen.get(kind) ?? []
    seen.set(kind, values)
    if (!values.includes(value)) values.push(value)
    return values.indexOf(value)
  }
  const bytesFor = (kind: string, value: string, length: number): Buffer => {
    const seed = `${kind} ${placeOf(kind, value)}`
    const parts = Array.from({ length: Math.ceil(length / 32) }, (_, part) =>
      hash('sha256', `${seed} ${part}`, 'buffer'),
    )
    return Buffer.concat(parts).subarray(0, length)
  }
  const hexFor = (kind: string, text: string, prefix: string): string =>
    prefix + bytesFor(kind, text, (text.length - prefix.length) / 2).toString('hex')
  const textFor = (text: string, prefix: string, encoding: 'base64' | 'base64url'): string =>
    prefix +
    bytesFor('random', text, text.length)
      .toString(encoding)
      .slice(0, text.length - prefix.length)
  /** What happened in the same run is now; what is ahead is rounded up, because it was set some seconds ago on a slow machine. */
  const moved = (ms: number): number => {
    const minutes = (ms - now - 2_000) / 60_000
    if (minutes <= 0 && minutes > -runMinutesMax) return recordedAt
    return recordedAt + (minutes > 0 ? Math.ceil(minutes) : Math.round(minutes)) * 60_000
  }
  const isNear = (ms: number): boolean => Math.abs(ms - now) < 400 * dayMs

  const replacements: Readonly<Record<Kind, (text: string) => string>> = {
    json(text) {
      const decoded = Buffer.from(text, 'base64').toString('utf8')
      if (!isJson(decoded)) return text
      const isUrl = !/[+/=]/.test(text)
      return Buffer.from(JSON.stringify(normal(JSON.parse(decoded)))).toString(isUrl ? 'base64url' : 'base64')
    },
    id(text) {
      const prefix = text.slice(0, text.indexOf('_'))
      return `${prefix}_01h455vb4pex5vsknk084sn02${lastOfId[placeOf(prefix, text) % lastOfId.length]}`
    },
    signature: (text) => hexFor('signature', text, '0x'),
    hash: (text) => hexFor('hash', text, text.startsWith('0x') ? '0x' : ''),
    address(text) {
      const lower = text.toLowerCase()
      if (constants.has(lower)) return text
      const own = privateKeyToAddress(`0x${bytesFor('address', lower, 32).toString('hex')}`)
      return text === lower ? own.toLowerCase() : own
    },
    instant(text) {
      const ms = Date.parse(text)
      if (!isNear(ms)) return text
      const isMidnight = text.includes('T00:00:00')
      return new Date(isMidnight ? dayOf(recordedAt) + ms - dayOf(now) : moved(ms)).toISOString()
    },
    seconds: (text) => (isNear(Number(text) * 1000) ? String(moved(Number(text) * 1000) / 1000) : text),
    sealKey: (text) => hexFor('key', text, 'seal-'),
    email: () => 'owner@example.com',
    // As the service makes them, so that an example verifies.
    secret: (text) => `whsec_${bytesFor('secret', text, 32).toString('base64')}`,
    random(text) {
      const prefix = /^(?:svc_(?:test|live)_sk_|stl_|vat_)?/.exec(text)?.[0] ?? ''
      return isRandom(text.slice(prefix.length)) ? textFor(text, prefix, 'base64url') : text
    },
    fee: () => '0.0000648',
  }

  function normal(value: unknown, member = ''): unknown {
    if (typeof value === 'string') return member === 'last4' ? 'x7Qf' : replaced(value)
    if (typeof value === 'number') return numberIn(member, value)
    if (Array.isArray(value)) return value.map((inner) => normal(inner))
    if (typeof value !== 'object' || value === null) return value
    if (member === 'period') return { start: '2026-11-01T00:00:00.000Z', end: '2026-12-01T00:00:00.000Z' }
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, normal(inner, name)]))
  }

  function numberIn(member: string, value: number): number {
    if (/(?:^p\d\d|^duration)Ms$/.test(member)) return 40
    if (member === 'blockNumber') return 34_567_890
    return Number(replacements.seconds(String(value)))
  }

  function replaced(text: string): string {
    return text.replaceAll(anyKind, (found, ...rest) => {
      const groups: Readonly<Record<string, string | undefined>> = Object(rest.at(-1))
      const kind = kinds.find((one) => groups[one] !== undefined)
      return kind === undefined ? found : replacements[kind](found)
    })
  }
  return normal
}

const dayOf = (ms: number): number => ms - (ms % dayMs)

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Whether text is random bytes in base64: both cases, and a digit or the length of 16, 24, 32 or 64 bytes. */
function isRandom(text: string): boolean {
  const isMixed = /[A-Z]/.test(text) && /[a-z]/.test(text)
  return isMixed && !/^(?:0x|eyJ)/.test(text) && (/\d/.test(text) || [22, 32, 43, 86].includes(text.length))
}
