import { parseAddress, parseAmount } from '@purser/protocol'
import { z } from 'zod'
import type { NewPayoutAccount, PayoutAccount, PayoutRefusal, RequestedPayout } from './port.ts'

const short = z.string().min(1).max(256)
/** A decimal amount that is shown, with at most 18 decimals. In another form it is `unreadable`: it must not keep a payout from its end. */
const amount = z
  .string()
  .max(64)
  .refine((text) => typeof parseAmount(trimZeros(text), 18) === 'bigint')
  .nullish()
  .transform((text) => text ?? undefined)
  .catch('unreadable')

/** POST /customers/{id}/external_accounts. */
export const ExternalAccount = z.object({ id: short, active: z.boolean().optional() })

/** POST /transfers and GET /transfers/{id}; fields that are not parsed here are not used. */
export const Transfer = z.object({
  id: short,
  state: short,
  on_behalf_of: z.string().max(256).nullish(),
  client_reference_id: z.string().max(256).nullish(),
  source: z.object({ from_address: z.string().max(128).nullish() }).nullish(),
  destination: z
    .object({ external_account_id: z.string().max(256).nullish(), currency: z.string().max(16).nullish() })
    .nullish(),
  source_deposit_instructions: z
    .object({
      to_address: z.string().max(128).optional(),
      amount: z.string().max(64).optional(),
      currency: z.string().max(16),
      payment_rail: z.string().max(64),
    })
    .nullish(),
  receipt: z
    .object({
      initial_amount: amount,
      developer_fee: amount,
      exchange_fee: amount,
      gas_fee: amount,
      final_amount: amount,
      exchange_rate: amount,
    })
    .nullish()
    .catch(undefined),
})
export type Transfer = z.output<typeof Transfer>

const ErrorBody = z.object({
  code: z.string().max(128),
  message: z.string().max(1_024).optional(),
  source: z.object({ key: z.unknown() }).optional(),
})

/** Bridge's error code and the field that it is about. The message is omitted, because it may repeat the request. */
export function refusalOf(status: number, json: unknown): PayoutRefusal {
  const parsed = ErrorBody.safeParse(json)
  if (!parsed.success)
    return { code: `http-${status}`, message: 'The partner refused the request without giving a reason.' }
  const { key } = parsed.data.source ?? {}
  const fields =
    typeof key === 'string' ? key : typeof key === 'object' && key !== null ? Object.keys(key).join(', ') : ''
  const where = fields === '' ? '' : ` (${fields.slice(0, 200)})`
  return { code: parsed.data.code, message: `The partner refused the request: ${parsed.data.code}${where}.` }
}

export function accountOf(account: z.output<typeof ExternalAccount>): PayoutAccount {
  return { accountId: account.id, isActive: account.active !== false }
}

/** The request body for a new external account, or the reason why it cannot be created. */
export function externalAccountBody(request: NewPayoutAccount): Readonly<Record<string, unknown>> | PayoutRefusal {
  const { owner, destination } = request
  const common = { ...namesOf(owner), account_name: request.accountName, currency: destination.currency.toLowerCase() }
  if (destination.currency === 'GBP') {
    const account = { sort_code: destination.sortCode, account_number: destination.accountNumber }
    return { ...common, account_type: 'gb', account }
  }
  if (destination.currency === 'EUR') {
    const country = alpha3OfIban(destination.iban)
    if (country === undefined)
      return { code: 'country-not-supported', message: 'The partner does not support IBANs of that country.' }
    return {
      ...common,
      account_type: 'iban',
      iban: { account_number: destination.iban, bic: destination.swiftBic, country },
    }
  }
  if (request.address === undefined)
    return { code: 'address-required', message: 'The partner needs the owner’s address for payouts in dollars.' }
  const account = {
    routing_number: destination.routingNumber,
    account_number: destination.accountNumber,
    checking_or_savings: 'checking',
  }
  return { ...common, account_type: 'us', account, address: addressOf(request.address) }
}

function addressOf({ street, city, state, postalCode, country }: NonNullable<NewPayoutAccount['address']>) {
  return {
    street_line_1: street,
    city,
    ...(state === undefined ? {} : { state }),
    postal_code: postalCode,
    country,
  }
}

function namesOf(owner: NewPayoutAccount['owner']) {
  if (owner.kind === 'business')
    return { account_owner_type: 'business', account_owner_name: owner.name, business_name: owner.name }
  return {
    account_owner_type: 'individual',
    account_owner_name: `${owner.firstName} ${owner.lastName}`,
    first_name: owner.firstName,
    last_name: owner.lastName,
  }
}

/** Payment rails by currency, with the reference's field name on each. */
export const bankRails = {
  USD: { rail: 'ach', reference: 'ach_reference' },
  EUR: { rail: 'sepa', reference: 'sepa_reference' },
  GBP: { rail: 'faster_payments', reference: 'reference' },
} as const

/**
 * Whether a response differs from the request in customer, bank account, currency or reference: tokens sent for it would pay somebody else. Members
 * that the response omits are not compared.
 */
export function isOfAnother(transfer: Transfer, requested: RequestedPayout): boolean {
  const { destination } = transfer
  const pairs = [
    [transfer.on_behalf_of, requested.customerId],
    [transfer.client_reference_id, requested.key],
    [destination?.external_account_id, requested.accountId],
    [destination?.currency?.toLowerCase(), requested.currency.toLowerCase()],
  ]
  return pairs.some(
    ([answered, own]) => answered !== undefined && answered !== null && own !== undefined && answered !== own,
  )
}

/** Whether a response names another account that sends the tokens than was requested. */
export function isFromAnother({ source }: Transfer, { fromAddress }: RequestedPayout): boolean {
  const from = source?.from_address ?? fromAddress
  return from.toLowerCase() !== fromAddress.toLowerCase()
}

/** The deposit that Bridge requests, or undefined when it differs from the agreed one: tokens sent elsewhere cannot be recovered. */
export function depositOf(
  transfer: Transfer,
  requested: RequestedPayout,
): { address: `0x${string}`; rawAmount: bigint } | undefined {
  const instructions = transfer.source_deposit_instructions
  const address = parseAddress(instructions?.to_address ?? '')
  const rawAmount = parseAmount(trimZeros(instructions?.amount ?? ''), requested.token.decimals)
  if (address === undefined || rawAmount !== requested.rawAmount) return undefined
  if (
    instructions?.currency !== requested.token.symbol.toLowerCase() ||
    instructions.payment_rail !== requested.network
  )
    return undefined
  return { address, rawAmount }
}

/**
 * Removes trailing zeros. Bridge writes `10.0`, and may write more zeros than the token has decimals. Only the first of several zeros begins a match,
 * since a search from each of them would take time with the square of their number.
 */
export function trimZeros(amount: string): string {
  return amount.includes('.') ? amount.replace(/(?<!0)0+$/, '').replace(/\.$/, '') : amount
}

/** ISO 3166-1 alpha-2 and alpha-3 codes of the SEPA countries. */
const alpha3 = new Map(
  'ADAND ALALB ATAUT BEBEL BGBGR CHCHE CYCYP CZCZE DEDEU DKDNK EEEST ESESP FIFIN FRFRA GBGBR GIGIB GRGRC HRHRV HUHUN IEIRL ISISL ITITA LILIE LTLTU LULUX LVLVA MCMCO MDMDA MEMNE MKMKD MTMLT NLNLD NONOR PLPOL PTPRT RSSRB ROROU SESWE SISVN SKSVK SMSMR VAVAT'
    .split(' ')
    .map((pair) => [pair.slice(0, 2), pair.slice(2)]),
)

/** The alpha-3 country code of an IBAN; undefined for a country outside SEPA. */
function alpha3OfIban(iban: string): string | undefined {
  return alpha3.get(iban.slice(0, 2))
}
