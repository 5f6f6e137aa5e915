import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BankDetails, detailsOf, faultsOfDetails, maskOf, passesModulusCheck } from './rules.ts'

/** Vocalink, "Validating account numbers: UK modulus checking", 8.50, chapter 3: sort code, account number, whether it may be one. */
const vocalink = [
  ['089999', '66374958', true],
  ['107999', '88837491', true],
  ['202959', '63748472', true],
  ['871427', '46238510', true],
  ['872427', '46238510', true],
  ['871427', '09123496', true],
  ['871427', '99123496', true],
  ['820000', '73688637', true],
  ['827999', '73988638', true],
  ['827101', '28748352', true],
  ['134020', '63849203', true],
  ['118765', '64371389', true],
  ['200915', '41011166', true],
  ['938611', '07806039', true],
  ['938600', '42368003', true],
  ['938063', '55065200', true],
  ['772798', '99345694', true],
  ['086090', '06774744', true],
  ['309070', '02355688', true],
  ['309070', '12345668', true],
  ['309070', '12345677', true],
  ['309070', '99345694', true],
  ['938063', '15764273', false],
  ['938063', '15764264', false],
  ['938063', '15763217', false],
  ['118765', '64371388', false],
  ['203099', '66831036', false],
  ['203099', '58716970', false],
  ['089999', '66374959', false],
  ['107999', '88837493', false],
  ['074456', '12345112', true],
  ['070116', '34012583', true],
  ['074456', '11104102', true],
  ['180002', '00000190', true],
] as const

test.each(vocalink)(
  'the industry’s own example %s %s has the expected verdict: %s',
  (sortCode, accountNumber, expected) => {
    expect(passesModulusCheck(sortCode, accountNumber)).toBe(expected)
  },
)

test('earlier checks change no verdict', () => {
  const verdicts = () => vocalink.map(([sortCode, accountNumber]) => passesModulusCheck(sortCode, accountNumber))
  const before = verdicts()
  for (let number = 0; number < 2_000; number++)
    passesModulusCheck('772798', `993${number.toString().padStart(5, '0')}`)
  expect(verdicts()).toEqual(before)
})

test('a sort code with two checks needs both', () => {
  const numbers = Array.from({ length: 2_000 }, (_, at) => String(20_000_000 + at * 7))
  const passing = numbers.filter((number) => passesModulusCheck('203099', number)).length
  // One number in eleven passes the one check and one in ten the other: about eighteen pass both.
  expect(passing).toBeGreaterThan(5)
  expect(passing).toBeLessThan(60)
})

test('a sort code that the table does not contain cannot be checked, and passes', () => {
  expect(passesModulusCheck('000000', '12345678')).toBe(true)
})

const good = {
  GBP: { sortCode: '20-29-59', accountNumber: '6374 8472' },
  USD: { routingNumber: '021 000 021', accountNumber: '1234567' },
  EUR: { iban: 'de89 3704 0044 0532 0130 00', swiftBic: 'cobadeff' },
} as const

test.each(['GBP', 'USD', 'EUR'] as const)(
  'an account in %s is accepted with spaces, hyphens and lower case',
  (currency) => {
    expect(faultsOfDetails(currency, good[currency])).toEqual([])
    const details = detailsOf(currency, good[currency])
    expect(JSON.stringify(details)).not.toMatch(/[ a-z]{2,}"[,}]/)
    expect(BankDetails.parse(details)).toEqual(details)
  },
)

test('each currency requires its own fields, and accepts no other', () => {
  const named = (currency: 'GBP' | 'USD' | 'EUR', written: object) =>
    faultsOfDetails(currency, written).map(({ field }) => field)
  expect(named('GBP', {})).toEqual(['sortCode', 'accountNumber'])
  expect(named('USD', {})).toEqual(['accountNumber', 'routingNumber'])
  expect(named('EUR', {})).toEqual(['iban', 'swiftBic'])
  expect(named('EUR', { ...good.GBP, ...good.EUR })).toEqual(['sortCode', 'accountNumber'])
  expect(named('GBP', { ...good.GBP, routingNumber: '' })).toEqual(['routingNumber'])
})

test.each([
  ['USD', { routingNumber: '000000000', accountNumber: '1234567' }, 'nine zeros'],
  ['USD', { routingNumber: '021000022', accountNumber: '1234567' }, 'a wrong check digit'],
  ['USD', { routingNumber: '400000006', accountNumber: '1234567' }, 'a district that does not exist'],
  ['USD', { routingNumber: '021000021', accountNumber: '123' }, 'too few digits'],
  ['USD', { routingNumber: '021000021', accountNumber: '1'.repeat(18) }, 'too many digits'],
  ['GBP', { sortCode: '202959', accountNumber: '63748473' }, 'a mistyped digit'],
  ['GBP', { sortCode: '20295', accountNumber: '63748472' }, 'a sort code too short'],
  ['GBP', { sortCode: '202959', accountNumber: '３３３３３３３３' }, 'digits of another script'],
  ['EUR', { iban: 'DE89370400440532013001', swiftBic: 'COBADEFF' }, 'a wrong check sum'],
  ['EUR', { iban: 'XX89370400440532013000', swiftBic: 'COBADEFF' }, 'a country without IBANs'],
  ['EUR', { iban: 'DE89370400440532013000', swiftBic: 'COBADEF' }, 'a BIC too short'],
] as const)('%s %o is refused: %s', (currency, written, _why) => {
  expect(faultsOfDetails(currency, written)).toHaveLength(1)
})

test('a mistyped digit anywhere in an IBAN or a routing number is detected', () => {
  const replaced = (text: string, at: number, digit: number) => text.slice(0, at) + digit + text.slice(at + 1)
  fc.assert(
    fc.property(fc.nat(17), fc.nat(8), fc.nat(9), (ibanAt, routingAt, digit) => {
      const iban = replaced('DE89370400440532013000', ibanAt + 4, digit)
      const routingNumber = replaced('021000021', routingAt, digit)
      const eur = faultsOfDetails('EUR', { iban, swiftBic: 'COBADEFF' })
      const usd = faultsOfDetails('USD', { routingNumber, accountNumber: '1234567' })
      expect(eur.length).toBe(iban === 'DE89370400440532013000' ? 0 : 1)
      expect(usd.length).toBe(routingNumber === '021000021' ? 0 : 1)
    }),
  )
})

test('no fault repeats the input', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('GBP' as const, 'USD' as const, 'EUR' as const),
      fc.string({ minLength: 8 }),
      (currency, text) => {
        const written = { sortCode: text, accountNumber: text, routingNumber: text, iban: text, swiftBic: text }
        const faults = faultsOfDetails(currency, written)
        expect(faults).not.toEqual([])
        for (const { message } of faults) expect(message).not.toContain(text)
      },
    ),
  )
})

test('the mask shows the last four characters and no others', () => {
  expect(maskOf(detailsOf('GBP', good.GBP))).toBe('****8472')
  expect(maskOf(detailsOf('EUR', good.EUR))).toBe('****3000')
})
