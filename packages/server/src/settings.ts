import type { ConfigFault } from './platform/config-fault.ts'

type Env = Readonly<Record<string, string | undefined>>

/** An environment that notes the names that are read from it. */
export function watchReads(env: Env): { readonly env: Env; readonly names: ReadonlySet<string> } {
  const names = new Set<string>()
  const watched = new Proxy(env, {
    get(target, name) {
      if (typeof name === 'string') names.add(name)
      return Reflect.get(target, name)
    },
  })
  return { env: watched, names }
}

/**
 * Returns environment variables that are no settings but were probably meant as such: settings of unknown networks, misspelled names of settings,
 * also beside the right name, and unknown names that begin as settings of this service alone do. All other variables are ignored.
 */
export function misspelledSettings(env: Env, known: ReadonlySet<string>): ConfigFault[] {
  const isSet = (name: string): boolean => (env[name] ?? '') !== ''
  return Object.keys(env).flatMap((name) => {
    if (known.has(name) || !isSet(name)) return []
    const prefix = ownPrefixes.find((one) => name.startsWith(one))
    const near = [...known].filter((one) => isNear(name, one))
    const unset = near.find((one) => !isSet(one))
    if (unset !== undefined) return [{ name, fault: 'is not a setting', how: `did you mean ${unset}?` }]
    const isOfNetwork = prefix !== undefined && perNetwork.has(prefix)
    if (near[0] !== undefined && !isOfNetwork && !ofOtherPrograms.has(name))
      return [{ name, fault: 'is not a setting', how: `${near[0]} is set too: remove ${name}` }]
    if (prefix === undefined || ofService.test(name)) return []
    const fault = isOfNetwork ? 'names no known network' : 'is not a setting'
    return [{ name, fault, how: `use one of ${[...known].filter((one) => one.startsWith(prefix)).join(', ')}` }]
  })
}

/** Settings that exist once for each network begin with these. */
const perNetwork: ReadonlySet<string> = new Set(['RPC_URL_', 'EXPLORER_URL_'])

/** Kubernetes sets such names for each service of a namespace, as `SETTLE_SERVICE_HOST` for one that is named `settle`. */
const ofService = /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)\w*)?)$/

/** Settings of this service alone begin with these, and those of this service are read whatever else is set. */
const ownPrefixes = [...perNetwork, 'VAULT_TTL_', 'SETTLE_', 'ORGANISATION_RATE_LIMIT_', 'ADDRESS_RATE_LIMIT_']

/** Names near those of settings that hosts and frameworks set for other programs. */
const ofOtherPrograms: ReadonlySet<string> = new Set(['DATABASE_URI', 'BASE_URI'])

/** Shorter names are too close to those of other programs. */
const nameLengthMin = 8

function isNear(name: string, known: string): boolean {
  if (name.length < nameLengthMin || known.length < nameLengthMin) return false
  // The names of networks are short: two other letters are another network.
  const isOfNetwork = [...perNetwork].some((prefix) => known.startsWith(prefix))
  return editDistance(name, known) <= (known.length < 12 || isOfNetwork ? 1 : 2)
}

/** The fewest insertions, deletions, replacements and swaps of neighbors that make one text the other (optimal string alignment). */
function editDistance(from: string, to: string): number {
  let beforeLast: readonly number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const line = [row]
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1]
      const isSwap = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      const costs = [
        (last[column] ?? 0) + 1,
        (line[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        ...(row > 1 && column > 1 && isSwap ? [(beforeLast[column - 2] ?? 0) + 1] : []),
      ]
      line.push(Math.min(...costs))
    }
    beforeLast = last
    last = line
  }
  return last[to.length] ?? 0
}

/** Reads for how many days rows of a table stay in the database before `purser admin archive` may take them; undefined: forever. */
export function readKeptDays(read: Reader, name: 'PAYMENTS_KEPT_DAYS' | 'AUDIT_LOG_KEPT_DAYS'): number | undefined {
  const days = read.integer(name, 0, 0, 36_500)
  return days === 0 ? undefined : Math.max(days, keptDaysMin)
}

/** Sessions, redemptions and Idempotency-Keys of a payment have ended by then, and the reads of one that ended unpaid. */
const keptDaysMin = 60

export type Reader = ReturnType<typeof createReader>

/** Reads settings, and notes the faults of those that cannot be used. An empty variable counts as one that is not set. */
export function createReader(env: Env, faults: ConfigFault[]) {
  const refuse = (name: string, how: string, fault = 'is not usable'): void => void faults.push({ name, fault, how })
  const text = (name: string): string | undefined => env[name] || undefined
  const oneOf = <T extends string>(name: string, known: readonly T[], fallback: T): T => {
    const value = text(name)
    if (value === undefined) return fallback
    const found = known.find((one) => one === value)
    if (found === undefined) refuse(name, `set it to one of ${known.join(', ')}`)
    return found ?? fallback
  }
  return {
    /** Notes a fault of a setting, and how to correct it. */
    refuse,
    text,
    oneOf,
    required(name: string, how: string, fits: (value: string) => boolean = () => true): string {
      const value = text(name)
      if (value === undefined) refuse(name, `set it to ${how}`, 'is missing')
      else if (!fits(value)) refuse(name, `set it to ${how}`)
      return value ?? ''
    },
    optional(name: string, how: string, fits: (value: string) => boolean): string | undefined {
      const value = text(name)
      if (value !== undefined && !fits(value)) refuse(name, `set it to ${how}, or leave it out`)
      return value
    },
    /** Whether the setting is `true`; it may be left out for `false`. */
    flag: (name: string): boolean => oneOf(name, ['true', 'false'], 'false') === 'true',
    /** The parts between commas. */
    list(name: string): readonly string[] {
      const parts = (text(name) ?? '').split(',').map((part) => part.trim())
      return parts.filter((part) => part !== '')
    },
    integer(name: string, fallback: number, least: number, most: number): number {
      const value = text(name)
      if (value === undefined) return fallback
      const number = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN
      if (number >= least && number <= most) return number
      refuse(name, `set it to a whole number from ${least} to ${most}, or leave it out for ${fallback}`)
      return fallback
    },
  }
}
