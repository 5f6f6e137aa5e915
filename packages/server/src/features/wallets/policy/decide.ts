import {
  attoOf,
  capOf,
  type PolicyDocument,
  type PolicyOperation,
  type PolicyWindow,
  policyOperations,
  policyWindows,
} from './document.ts'

/** A requested outgoing movement. */
export interface Movement {
  readonly operation: PolicyOperation
  readonly token: { readonly symbol: string; readonly decimals: number }
  readonly rawAmount: bigint
  /** A checksummed address, or the id of a bank account. */
  readonly recipient: string
}

/** The amounts that left the wallet and its children in each window, including reservations, of this token, in 1e-18 of it. */
export type Usage = Readonly<Record<PolicyWindow, bigint>>

/** The rule that refused: returned to the caller and stored in the audit log. */
export type PolicyRule = 'operation' | 'recipient' | 'token' | 'perTransaction' | PolicyWindow

export type PolicyVerdict = { readonly allowed: true } | { readonly allowed: false; readonly rule: PolicyRule }

const windows = ['perHour', 'perDay', 'perMonth'] as const satisfies readonly PolicyWindow[]

/**
 * Whether a movement is permitted. Without a policy it is. With one, only the named operations, recipients and tokens are, within every
 * cap, including the movement itself. `usage` must be read under the lock under which the reservation is written, or two concurrent
 * movements could both fit.
 */
export function decide(policy: PolicyDocument | undefined, movement: Movement, usage: Usage): PolicyVerdict {
  if (policy === undefined) return { allowed: true }
  const rule = ruleAgainst(policy, movement, usage)
  return rule === undefined ? { allowed: true } : { allowed: false, rule }
}

function ruleAgainst(policy: PolicyDocument, movement: Movement, usage: Usage): PolicyRule | undefined {
  const operation = policy.operations[movement.operation]
  if (operation === undefined) return 'operation'
  const recipients: 'any' | readonly string[] = operation.recipients
  if (recipients !== 'any' && !recipients.includes(movement.recipient)) return 'recipient'
  const caps = Object.hasOwn(policy.tokens, movement.token.symbol) ? policy.tokens[movement.token.symbol] : undefined
  if (caps === undefined) return 'token'
  const atto = attoOf(movement.rawAmount, movement.token.decimals)
  if (isOver(atto, caps.perTransaction)) return 'perTransaction'
  return windows.find((window) => isOver(usage[window] + atto, caps[window]))
}

/**
 * The window of the coin's cap that gas and top-ups would exceed; undefined if the policy has no cap of the coin. A cap per transaction
 * applies to the amount, not to the gas. `beside` is the other amount of the coin in the same movement, in 1e-18 of it.
 */
export function gasRuleAgainst(
  policy: PolicyDocument,
  gas: { readonly token: string; readonly rawAmount: bigint; readonly decimals: number },
  { usage, beside }: { readonly usage: Usage; readonly beside: bigint },
): PolicyWindow | undefined {
  const caps = Object.hasOwn(policy.tokens, gas.token) ? policy.tokens[gas.token] : undefined
  const atto = attoOf(gas.rawAmount, gas.decimals) + beside
  return windows.find((window) => isOver(usage[window] + atto, caps?.[window]))
}

/**
 * The amount above which the policy requires a person's approval, if the movement exceeds it; undefined if it needs no approval. An
 * approval never replaces a cap: call it for a movement that `decide` allows.
 */
export function approvalLimitOf(
  policy: PolicyDocument,
  { token, rawAmount }: Pick<Movement, 'token' | 'rawAmount'>,
): string | undefined {
  const limit = Object.hasOwn(policy.tokens, token.symbol) ? policy.tokens[token.symbol]?.approvalAbove : undefined
  return isOver(attoOf(rawAmount, token.decimals), limit) ? limit : undefined
}

/** What refused a movement, in a sentence. Amounts are in whole tokens; `used` is there for the caps over time. */
export function denialSentence(denial: {
  readonly rule: PolicyRule
  readonly operation: PolicyOperation
  readonly recipient: string
  readonly token: string
  readonly amount: string
  readonly cap?: string
  readonly used?: string
}): string {
  const { rule, operation, recipient, token, amount, cap, used } = denial
  const does = "The wallet's spend policy"
  if (rule === 'operation') return `${does} does not allow the operation "${operation}". Nothing was moved.`
  if (rule === 'recipient')
    return `${does} does not name ${recipient} as a recipient of "${operation}". Nothing was moved.`
  if (rule === 'token') return `${does} does not name the token ${token}. Nothing was moved.`
  const most = `${does} allows at most ${cap} ${token} ${spans[rule]}`
  const rest = used === undefined ? `and this one is ${amount} ${token}` : `${used} is used, and this needs ${amount}`
  return `${most}${used === undefined ? ', ' : ': '}${rest}. Nothing was moved.`
}

const spans: Readonly<Record<'perTransaction' | PolicyWindow, string>> = {
  perTransaction: 'in one movement',
  perHour: 'in an hour',
  perDay: 'in a day',
  perMonth: 'in thirty days',
}

function isOver(atto: bigint, text: string | undefined): boolean {
  const cap = capOf(text)
  return cap !== undefined && atto > cap
}

/** Start of each window, in milliseconds since 1970; a movement at exactly that time does not count. */
export function windowStartsAt(nowMs: number): Readonly<Record<PolicyWindow, number>> {
  return {
    perHour: nowMs - policyWindows.perHour * 1_000,
    perDay: nowMs - policyWindows.perDay * 1_000,
    perMonth: nowMs - policyWindows.perMonth * 1_000,
  }
}

/**
 * Where a new policy permits what the old one refuses, as JSON pointers into the new one; empty if nowhere. An API key may only tighten, so
 * that an agent cannot raise its own cap. Setting the first policy is not a loosening; removing the last one is.
 */
export function looseningsOf(before: PolicyDocument | undefined, after: PolicyDocument | undefined): readonly string[] {
  if (before === undefined) return []
  if (after === undefined) return ['']
  const operations = policyOperations.filter((name) => isOperationLoosened(before, after, name))
  return [...operations.map((name) => `/operations/${name}`), ...tokensLoosened(before, after)]
}

/** Whether a new policy permits anything that the old one refuses. */
export function isLoosened(before: PolicyDocument | undefined, after: PolicyDocument | undefined): boolean {
  return looseningsOf(before, after).length > 0
}

function isOperationLoosened(before: PolicyDocument, after: PolicyDocument, name: PolicyOperation): boolean {
  const [old, now] = [before.operations[name], after.operations[name]]
  if (now === undefined) return false
  if (old === undefined) return true
  if (old.recipients === 'any') return false
  const known: readonly string[] = old.recipients
  return now.recipients === 'any' || now.recipients.some((recipient) => !known.includes(recipient))
}

function tokensLoosened(before: PolicyDocument, after: PolicyDocument): string[] {
  return Object.entries(after.tokens).flatMap(([symbol, now]) => {
    const old = Object.hasOwn(before.tokens, symbol) ? before.tokens[symbol] : undefined
    const path = `/tokens/${symbol.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (old === undefined) return [path]
    const raised = (['perTransaction', ...windows, 'approvalAbove'] as const).filter((name) =>
      isCapRaised(capOf(old[name]), capOf(now[name])),
    )
    return raised.map((name) => `${path}/${name}`)
  })
}

function isCapRaised(old: bigint | undefined, now: bigint | undefined): boolean {
  return old !== undefined && (now === undefined || now > old)
}
