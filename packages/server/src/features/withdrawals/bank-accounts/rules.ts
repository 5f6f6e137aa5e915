import { isValidBIC, isValidIBAN } from 'ibantools'
import { BankDetails, type Currency } from './details.ts'
import { passesModulusCheck } from './modulus-check.ts'

/** The fields of a request that describe an account; any of them may be missing. */
export interface WrittenDetails {
  readonly sortCode?: string | undefined
  readonly accountNumber?: string | undefined
  readonly routingNumber?: string | undefined
  readonly iban?: string | undefined
  readonly swiftBic?: string | undefined
}
type Field = keyof WrittenDetails

/** A fault of a field. The message contains nothing of the input, since it is stored and logged. */
export interface DetailFault {
  readonly field: Field
  readonly message: string
}

interface Rule {
  readonly fits: (value: string) => boolean
  readonly message: string
}

const sortCode: Rule = { fits: (value) => /^\d{6}$/.test(value), message: 'must be 6 digits' }
const ukAccountNumber: Rule = { fits: (value) => /^\d{8}$/.test(value), message: 'must be 8 digits' }
const usAccountNumber: Rule = { fits: (value) => /^\d{4,17}$/.test(value), message: 'must be 4 to 17 digits' }
const routingNumber: Rule = {
  fits: isRoutingNumber,
  message: 'must be the 9 digits of an ABA routing number, with its check digit',
}
const iban: Rule = {
  fits: (value) => isValidIBAN(value),
  message: 'must be an IBAN of its country’s form (ISO 13616), with its check digits',
}
const swiftBic: Rule = { fits: (value) => isValidBIC(value), message: 'must be a BIC of 8 or 11 characters (ISO 9362)' }

const rules: Readonly<Record<Currency, Readonly<Partial<Record<Field, Rule>>>>> = {
  GBP: { sortCode, accountNumber: ukAccountNumber },
  USD: { routingNumber, accountNumber: usAccountNumber },
  EUR: { iban, swiftBic },
}
const fields = ['sortCode', 'accountNumber', 'routingNumber', 'iban', 'swiftBic'] as const satisfies readonly Field[]

/** All faults of account details in this currency; empty if they are valid. */
export function faultsOfDetails(currency: Currency, written: WrittenDetails): readonly DetailFault[] {
  const faults = fields.flatMap((field) => faultOf(currency, field, written[field]))
  return faults.length === 0 && currency === 'GBP' ? modulusFault(written) : faults
}

/** The details of a request without faults, as they are stored. */
export function detailsOf(currency: Currency, written: WrittenDetails): BankDetails {
  const named = fields.filter((field) => rules[currency][field] !== undefined)
  return BankDetails.parse({
    currency,
    ...Object.fromEntries(named.map((field) => [field, normalised(written[field] ?? '')])),
  })
}

function faultOf(currency: Currency, field: Field, value: unknown): readonly DetailFault[] {
  const rule = rules[currency][field]
  // The request's schema reports values of other types.
  if (value !== undefined && typeof value !== 'string') return []
  if (rule === undefined)
    return value === undefined ? [] : [{ field, message: `does not belong to an account in ${currency}` }]
  if (value === undefined) return [{ field, message: `is required for ${currency}` }]
  return rule.fits(normalised(value)) ? [] : [{ field, message: rule.message }]
}

function modulusFault(written: WrittenDetails): readonly DetailFault[] {
  const { sortCode: sort, accountNumber: number } = written
  if (typeof sort !== 'string' || typeof number !== 'string') return []
  if (isSample(written) || passesModulusCheck(normalised(sort), normalised(number))) return []
  return [notOfSortCode]
}

const notOfSortCode: DetailFault = {
  field: 'accountNumber',
  message: 'is not an account number of this sort code (modulus check)',
}

/** The account of examples everywhere, which no bank has: the modulus check refuses it. */
function isSample({ sortCode: sort, accountNumber: number }: WrittenDetails): boolean {
  return normalised(sort ?? '') === '200000' && normalised(number ?? '') === '12345678'
}

/** Additional faults of details for real payouts: the sample account is for tests only. */
export function faultsOfLiveDetails(currency: Currency, written: WrittenDetails): readonly DetailFault[] {
  return currency === 'GBP' && isSample(written) ? [notOfSortCode] : []
}

/** Removes spaces and hyphens between groups, and converts to upper case. */
function normalised(value: string): string {
  return value.replaceAll(/[\s-]/g, '').toUpperCase()
}

/**
 * Nine digits, weighted 3 7 1, whose sum ends in zero. The first two name a Federal Reserve district, a thrift, an electronic or a
 * government number (ABA Routing Number Policy). A checksum alone would accept nine zeros and unassigned ranges.
 */
function isRoutingNumber(value: string): boolean {
  if (!/^(?:0\d|1[0-2]|2[1-9]|3[0-2]|6[1-9]|7[0-2]|80)\d{7}$/.test(value) || /^0+$/.test(value)) return false
  const sum = [...value].reduce((total, digit, at) => total + Number(digit) * ([3, 7, 1][at % 3] ?? 0), 0)
  return sum % 10 === 0
}
