import { createHash } from 'node:crypto'
import { canonicalJson } from '@purser/protocol'
import { type EffectivePolicy, type PolicyOperation, policyOperations } from './decide.ts'

/** Largest policies that the audit log has as they are, in characters of JSON of both. */
const shownCharactersMax = 4_096
/** Most recipients that a record of a larger policy names, of those that were added and of those that were removed. */
const namedMax = 10

type Recipients = 'any' | readonly string[]

/**
 * Returns the audit record of a policy change: both policies if they are small. Otherwise their SHA-256 as canonical JSON (RFC 8785), how many
 * recipients each operation gained and lost with the first of them, and the tokens.
 */
export function policyChange(
  before: EffectivePolicy | undefined,
  after: EffectivePolicy | undefined,
): Readonly<Record<string, unknown>> {
  const whole = { from: before ?? null, to: after ?? null }
  if (JSON.stringify(whole).length <= shownCharactersMax) return whole
  const operations = policyOperations.flatMap((name) => {
    const change = recipientsChange(before?.operations[name]?.recipients, after?.operations[name]?.recipients)
    return change === undefined ? [] : [[name, change] as [PolicyOperation, unknown]]
  })
  const tokens = { from: before?.tokens ?? null, to: after?.tokens ?? null }
  return {
    from: digestOf(before),
    to: digestOf(after),
    operations: Object.fromEntries(operations),
    ...(canonicalJson(tokens.from) !== canonicalJson(tokens.to) && { tokens }),
  }
}

function digestOf(document: EffectivePolicy | undefined): { readonly sha256: string } | null {
  if (document === undefined) return null
  return { sha256: createHash('sha256').update(canonicalJson(document)).digest('hex') }
}

/** Returns how the recipients of an operation changed; undefined if they are the same. */
function recipientsChange(before: Recipients | undefined, after: Recipients | undefined): unknown {
  const [old, now] = [namesOf(before), namesOf(after)]
  const added = [...now].filter((name) => !old.has(name))
  const removed = [...old].filter((name) => !now.has(name))
  const [from, to] = [countOf(before), countOf(after)]
  if (added.length === 0 && removed.length === 0 && from === to) return undefined
  return {
    from,
    to,
    ...(added.length > 0 && { added: added.length, firstAdded: added.slice(0, namedMax) }),
    ...(removed.length > 0 && { removed: removed.length, firstRemoved: removed.slice(0, namedMax) }),
  }
}

function namesOf(recipients: Recipients | undefined): ReadonlySet<string> {
  return new Set(typeof recipients === 'string' ? [] : recipients)
}

/** The number of recipients, or `any`; null for an operation that is not named. */
function countOf(recipients: Recipients | undefined): 'any' | number | null {
  if (recipients === undefined) return null
  return typeof recipients === 'string' ? 'any' : recipients.length
}
