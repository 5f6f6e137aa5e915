import { networks, parseAddress, parseAmount } from '@purser/protocol'
import { z } from 'zod'
import { isId } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'

/** Operations by which money can leave a managed wallet and its children. */
export const policyOperations = ['transfer', 'pay', 'withdraw', 'legacyWithdraw', 'sweep'] as const
export type PolicyOperation = (typeof policyOperations)[number]

/** Rolling windows with their lengths. A month is thirty days: a cap must not grow with the calendar. */
export const policyWindows = { perHour: 3_600, perDay: 86_400, perMonth: 2_592_000 } as const
export type PolicyWindow = keyof typeof policyWindows

/** More decimals than any token, so that one cap applies on chains where the token has other decimals. */
const capDecimals = 18
const Cap = z
  .string()
  .refine((text) => typeof parseAmount(text, capDecimals) === 'bigint', 'must be a decimal amount, not negative')

export const Caps = z.strictObject({
  perTransaction: Cap.optional().describe('Most of one movement, in whole tokens.'),
  perHour: Cap.optional().describe('Most of any 60 minutes, in whole tokens.'),
  perDay: Cap.optional().describe('Most of any 24 hours, in whole tokens.'),
  perMonth: Cap.optional().describe('Most of any 30 days, in whole tokens.'),
  approvalAbove: Cap.optional().meta({
    description: 'A person approves each movement of more than this amount, in whole tokens.',
  }),
})
export type Caps = z.output<typeof Caps>

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
 * What may leave a wallet. An operation or a token that is not named may not; an omitted cap is unlimited. Caps are per token, over all
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

/** An amount in the token's smallest unit as a number in 1e-18 of it. Tokens with more decimals are not transferred. */
export function attoOf(rawAmount: bigint, decimals: number): bigint {
  if (decimals > capDecimals) throw new RangeError('a token with more decimals than policies support')
  return rawAmount * 10n ** BigInt(capDecimals - decimals)
}

named({ PolicyCaps: Caps, PolicyDocument })
