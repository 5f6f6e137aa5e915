import { attoOf, networks, parseAddress, parseAmount } from '@purser/protocol'
import { z } from 'zod'
import { isId } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'

/** A requested outgoing movement. */
export interface Movement {
  readonly operation: PolicyOperation
  readonly token: { readonly symbol: string; readonly decimals: number }
  readonly rawAmount: bigint
  /** A checksummed address, or the id of a bank account. */
  readonly recipient: string
}

/** The amounts that left the wallet and its children in each window, including reservations, of this token, in 1e-18 of it. */
export type PolicyUsage = Readonly<Record<PolicyWindow, bigint>>

/** The rule that refused: returned to the caller and stored in the audit log. */
export type PolicyRule = 'operation' | 'recipient' | 'token' | 'perTransaction' | PolicyWindow

export type PolicyVerdict = { readonly allowed: true } | { readonly allowed: false; readonly rule: PolicyRule }

const windows = ['perHour', 'perDay', 'perMonth'] as const satisfies readonly PolicyWindow[]

/**
 * Whether a movement is permitted. Without a policy it is. With one, only the named operations, recipients and tokens are, within every
 * cap, including the movement itself. `usage` must be read under the lock under which the reservation is written, or two concurrent
 * movements could both fit.
 */
export function decide(policy: EffectivePolicy | undefined, movement: Movement, usage: PolicyUsage): PolicyVerdict {
  if (policy === undefined) return { allowed: true }
  const rule = ruleAgainst(policy, movement, usage)
  return rule === undefined ? { allowed: true } : { allowed: false, rule }
}

function ruleAgainst(policy: EffectivePolicy, movement: Movement, usage: PolicyUsage): PolicyRule | undefined {
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
  policy: EffectivePolicy,
  gas: { readonly token: string; readonly rawAmount: bigint; readonly decimals: number },
  { usage, beside }: { readonly usage: PolicyUsage; readonly beside: bigint },
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
  policy: EffectivePolicy,
  { token, rawAmount }: Pick<Movement, 'token' | 'rawAmount'>,
): string | undefined {
  const limit = Object.hasOwn(policy.tokens, token.symbol) ? policy.tokens[token.symbol]?.approvalAbove : undefined
  return isOver(attoOf(rawAmount, token.decimals), limit) ? limit : undefined
}

/** The reason of a refusal, in a sentence. Amounts are in whole tokens; `used` is there for the caps over time. */
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
 * The members of a new policy that permit more than the old one, as JSON pointers into the new one; empty if there are none. An API key may only tighten, so
 * that an agent cannot raise its own cap. Setting the first policy is not a loosening; removing the last one is.
 */
export function looseningsOf(
  before: EffectivePolicy | undefined,
  after: EffectivePolicy | undefined,
): readonly string[] {
  if (before === undefined) return []
  if (after === undefined) return ['']
  const operations = policyOperations.filter((name) => isOperationLoosened(before, after, name))
  return [...operations.map((name) => `/operations/${name}`), ...tokensLoosened(before, after)]
}

function isOperationLoosened(before: EffectivePolicy, after: EffectivePolicy, name: PolicyOperation): boolean {
  const [old, now] = [before.operations[name], after.operations[name]]
  if (now === undefined) return false
  if (old === undefined) return true
  if (old.recipients === 'any') return false
  if (now.recipients === 'any') return true
  const known: ReadonlySet<string> = new Set(old.recipients)
  return now.recipients.some((recipient) => !known.has(recipient))
}

function tokensLoosened(before: EffectivePolicy, after: EffectivePolicy): string[] {
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

/** Operations by which money can leave a managed wallet and its children. */
export const policyOperations = ['transfer', 'pay', 'withdraw', 'legacyWithdraw', 'sweep'] as const
export type PolicyOperation = (typeof policyOperations)[number]

/** Rolling windows with their lengths. A month is thirty days: a cap must not grow with the calendar. */
const policyWindows = { perHour: 3_600, perDay: 86_400, perMonth: 2_592_000 } as const
export type PolicyWindow = keyof typeof policyWindows

/** More decimals than any token, so that one cap applies on chains where the token has other decimals. */
const capDecimals = 18
const Cap = z
  .string()
  .refine((text) => typeof parseAmount(text, capDecimals) === 'bigint', 'must be a decimal amount, not negative')

const Caps = z.strictObject({
  perTransaction: Cap.optional().describe('Most of one movement, in whole tokens.'),
  perHour: Cap.optional().describe('Most of any 60 minutes, in whole tokens.'),
  perDay: Cap.optional().describe('Most of any 24 hours, in whole tokens.'),
  perMonth: Cap.optional().describe('Most of any 30 days, in whole tokens.'),
  approvalAbove: Cap.optional().meta({
    description: 'A person approves each movement of more than this amount, in whole tokens.',
  }),
})

const recipientsMax = 1_000
const tokensMax = 64

/** Any symbol that a registry may use; nothing that JSON or the database could interpret differently. */
const TokenSymbol = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/, 'must be the symbol of a token')

/** An EVM address, or a bank account of the organisation's. */
const Recipient = z.string().transform((text, ctx) => {
  const known = isId('bac', text) ? text : parseAddress(text)
  if (known !== undefined) return known
  ctx.addIssue({ code: 'custom', message: 'must be an address or the id of a bank account' })
  return z.NEVER
})
const Recipients = z.union([z.literal('any'), z.array(Recipient).max(recipientsMax)], {
  error: `must be "any", or a list of at most ${recipientsMax.toLocaleString('en')} addresses and ids of bank accounts`,
})

/**
 * The movements that may leave a wallet. An operation or a token that is not named may not; an omitted cap is unlimited. Caps are per token, over all
 * operations, chains, and children of the wallet.
 */
export const PolicyDocument = z.strictObject({
  operations: z
    .partialRecord(
      z.enum(policyOperations),
      z.strictObject({
        recipients: Recipients.describe('Addresses and bank accounts that may receive the money, or `any`.'),
      }),
    )
    .describe('What may move money out of the wallet, by operation. An operation that is not named may not.'),
  tokens: z
    .record(TokenSymbol, Caps)
    .refine((tokens) => Object.keys(tokens).length <= tokensMax, `must name at most ${tokensMax} tokens`)
    .describe('What may leave, by token symbol. A token that is not named may not.'),
})
export type PolicyDocument = z.output<typeof PolicyDocument>

const EffectiveRule = z.strictObject({
  recipients: z
    .union([z.literal('any'), z.array(z.string())])
    .describe('Addresses and bank accounts that may receive the money, or `any`.'),
})

/** A policy as it is stored and returned. Its addresses were checked and checksummed when it was set: reading it calculates nothing. */
export const EffectivePolicy = z.strictObject({
  operations: z
    .partialRecord(z.enum(policyOperations), EffectiveRule)
    .describe('What may move money out of the wallet, by operation. An operation that is not named may not.'),
  tokens: z.record(z.string(), Caps).describe('What may leave, by token symbol. A token that is not named may not.'),
})
export type EffectivePolicy = z.output<typeof EffectivePolicy>

const knownSymbols = new Set(
  networks.flatMap(({ nativeCoin, tokens }) => [
    ...(nativeCoin === null ? [] : [nativeCoin.symbol]),
    ...tokens.map(({ symbol }) => symbol),
  ]),
)

/**
 * The tokens whose symbol is a known one in other letter case, with the known one. Such a policy would let none of the
 * known token out, and nobody would notice before the first refusal.
 */
export function miscasedTokensOf({ tokens }: PolicyDocument): readonly { given: string; known: string }[] {
  return Object.keys(tokens).flatMap((given) => {
    if (knownSymbols.has(given)) return []
    const known = [...knownSymbols].find((symbol) => symbol.toLowerCase() === given.toLowerCase())
    return known === undefined ? [] : [{ given, known }]
  })
}

/** A cap as a number in 1e-18 of the token; undefined for unlimited. */
export function capOf(text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined
  const cap = parseAmount(text, capDecimals)
  if (typeof cap !== 'bigint') throw new Error('a policy has a cap that is not an amount')
  return cap
}

named({ PolicyCaps: Caps, PolicyDocument, PolicyRule: EffectiveRule, EffectivePolicy })
