import { formatAmount, parseAddress, parseAmount } from '@purser/protocol'
import type { PolicyDocument } from '@purser/sdk'
import { groupDecimal, middleTruncate } from '../../ui/format.ts'
import type { PolicyLine } from './policy-words.ts'

/** A movement to check against a policy. */
export interface TriedMovement {
  readonly operation: 'transfer' | 'pay' | 'withdraw'
  readonly token: string
  /** Decimal, in whole tokens. */
  readonly amount: string
  /** An address, or the id of a bank account. */
  readonly recipient: string
}

const operationWords = { transfer: 'transfers', pay: 'payments to paid APIs', withdraw: 'withdrawals' } as const
const windows = ['perHour', 'perDay', 'perMonth'] as const
const capWords = {
  perTransaction: 'per transaction',
  perHour: 'per hour',
  perDay: 'per day',
  perMonth: 'per 30 days',
} as const
const decimals = 18

/**
 * Returns whether a policy would allow a movement out of a wallet that has spent nothing yet, and by which rule. The
 * service refuses in the same order (`decide` in wallets/policy); a test compares the two.
 */
export function policyVerdict(policy: PolicyDocument | null, movement: TriedMovement): PolicyLine {
  const { operation, token, amount, recipient } = movement
  if (policy === null) return passes('there is no policy.')
  const rule = policy.operations[operation]
  if (rule === undefined) return refused(`the policy does not allow ${operationWords[operation]}.`)
  if (rule.recipients !== 'any' && !rule.recipients.some((one) => normal(one) === normal(recipient)))
    return refused(`${middleTruncate(recipient)} is not an allowed recipient of ${operationWords[operation]}.`)
  const caps = Object.hasOwn(policy.tokens, token) ? policy.tokens[token] : undefined
  if (caps === undefined) return refused(`${token} may not leave this wallet.`)
  const atto = attoOf(amount)
  const broken = (['perTransaction', ...windows] as const).find((name) => atto > (attoOf(caps[name]) ?? atto))
  if (broken !== undefined)
    return refused(`at most ${groupDecimal(caps[broken] ?? '0')} ${token} may leave ${capWords[broken]}.`)
  const rests = windows.flatMap((name) => {
    const cap = attoOf(caps[name])
    return cap === undefined ? [] : [`${groupDecimal(formatAmount(cap - atto, decimals))} ${token} ${capWords[name]}`]
  })
  const left = rests.length === 0 ? '' : ` It leaves ${rests.join(', ')}.`
  if (atto > (attoOf(caps.approvalAbove) ?? atto))
    return {
      kind: 'person',
      text: `It waits for an approval: it is above ${groupDecimal(caps.approvalAbove ?? '0')} ${token}.${left}`,
    }
  return passes(`no rule refuses it.${left}`)
}

function passes(why: string): PolicyLine {
  return { kind: 'allows', text: `Yes: ${why}` }
}

function refused(why: string): PolicyLine {
  return { kind: 'refuses', text: `No: ${why}` }
}

/** The rule by which the service would refuse, according to the quote, as a sentence. */
export function denialWords(rule: string, token: string): PolicyLine {
  const cap = capWords[rule as keyof typeof capWords]
  if (cap === undefined) return refused(`the policy refuses it by its rule “${rule}”.`)
  return refused(`with what has left already, it is more ${token} than may leave ${cap}.`)
}

/** Normalizes a recipient: addresses are compared without regard to letter case. */
function normal(recipient: string): string {
  return parseAddress(recipient) ?? recipient
}

function attoOf(amount: string): bigint
function attoOf(amount: string | undefined): bigint | undefined
function attoOf(amount: string | undefined): bigint | undefined {
  if (amount === undefined) return undefined
  const atto = parseAmount(amount, decimals)
  return typeof atto === 'bigint' ? atto : undefined
}
