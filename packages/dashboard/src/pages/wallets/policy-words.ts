import type { PolicyDocument } from '@purser/sdk'
import { count, groupDecimal, middleTruncate } from '../../ui/format.ts'

export interface PolicyLine {
  /** Whether the rule allows, requires an approval or refuses. */
  readonly kind: 'allows' | 'person' | 'refuses'
  readonly text: string
}

type Operation = 'transfer' | 'pay' | 'withdraw' | 'legacyWithdraw' | 'sweep'

const operations: Readonly<Record<Operation, { readonly what: string; readonly any: string }>> = {
  transfer: { what: 'Transfers', any: 'any address' },
  pay: { what: 'Payments to paid APIs', any: 'any seller' },
  withdraw: { what: 'Withdrawals', any: 'any bank account of the organisation' },
  legacyWithdraw: { what: 'Withdrawals of the legacy wallet', any: 'any address' },
  sweep: { what: 'Sweeps to other addresses', any: 'any address' },
}
const operationNames = ['transfer', 'pay', 'withdraw', 'legacyWithdraw', 'sweep'] as const

/** Describes a spend policy in sentences; null is a wallet without one. */
export function policyLines(policy: PolicyDocument | null): readonly PolicyLine[] {
  if (policy === null) return [{ kind: 'allows', text: 'No limits: any amount can go to any address or bank account.' }]
  const named = operationNames.filter((name) => policy.operations[name] !== undefined)
  const tokens = Object.entries(policy.tokens)
  const isOpen = named.some((name) => recipientsIn(policy, name).length > 0) && tokens.length > 0
  if (!isOpen) return [{ kind: 'refuses', text: 'No money can leave this wallet or its child addresses.' }]
  const refused = operationNames.filter(
    (name) => !named.includes(name) && ['transfer', 'pay', 'withdraw'].includes(name),
  )
  return [
    ...named.map((name) => recipientsLine(name, policy)),
    ...tokens.flatMap(([symbol, caps]) => tokenLines(symbol, caps)),
    ...refused.map((name) => ({ kind: 'refuses' as const, text: `${operations[name].what} are refused.` })),
    { kind: 'refuses', text: `No other token than ${listed(tokens.map(([symbol]) => symbol))} can be sent.` },
  ]
}

function recipientsIn(policy: PolicyDocument, name: Operation): 'any' | readonly string[] {
  return policy.operations[name]?.recipients ?? []
}

/** Most recipients that a sentence names; it counts the others. */
const namedMax = 3

function recipientsLine(name: Operation, policy: PolicyDocument): PolicyLine {
  const { what, any } = operations[name]
  const recipients = recipientsIn(policy, name)
  if (recipients === 'any') return { kind: 'allows', text: `${what} may go to ${any}.` }
  if (recipients.length === 0) return { kind: 'refuses', text: `${what} are refused: no recipient is allowed.` }
  const shown = recipients.slice(0, namedMax).map((one) => middleTruncate(one))
  const more = recipients.length > namedMax ? `, and ${count(recipients.length - namedMax, 'other')}` : ''
  return { kind: 'allows', text: `${what} may go only to ${shown.join(', ')}${more}.` }
}

type Caps = PolicyDocument['tokens'][string]

function tokenLines(symbol: string, caps: Caps): readonly PolicyLine[] {
  const at = (cap: string | undefined, when: string) => (cap === undefined ? [] : [`${groupDecimal(cap)} ${when}`])
  const limits = [
    ...at(caps.perTransaction, 'per transaction'),
    ...at(caps.perHour, 'per hour'),
    ...at(caps.perDay, 'per day'),
    ...at(caps.perMonth, 'per 30 days'),
  ]
  const { approvalAbove } = caps
  const money: PolicyLine =
    limits.length === 0
      ? { kind: 'allows', text: `${symbol}: any amount.` }
      : { kind: 'allows', text: `${symbol}: at most ${listed(limits)}.` }
  if (approvalAbove === undefined) return [money]
  const text = /[1-9]/.test(approvalAbove)
    ? `Amounts above ${groupDecimal(approvalAbove)} ${symbol} need an approval.`
    : `Every amount of ${symbol} needs an approval.`
  return [money, { kind: 'person', text }]
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}
