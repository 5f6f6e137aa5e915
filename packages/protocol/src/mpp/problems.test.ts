import { Errors } from 'mppx'
import { expect, test } from 'vitest'
import { type MppProblem, mppProblems, mppProblemType } from './problems.ts'

const official: { readonly [code in MppProblem]: Errors.PaymentError } = {
  'payment-required': new Errors.PaymentRequiredError(),
  'malformed-credential': new Errors.MalformedCredentialError(),
  'invalid-challenge': new Errors.InvalidChallengeError(),
  'payment-expired': new Errors.PaymentExpiredError(),
  'verification-failed': new Errors.VerificationFailedError(),
  'payment-insufficient': new Errors.PaymentInsufficientError(),
  'invalid-payload': new Errors.InvalidPayloadError(),
  'payment-action-required': new Errors.PaymentActionRequiredError(),
  'method-unsupported': new Errors.PaymentMethodUnsupportedError(),
  'bad-request': new Errors.BadRequestError(),
  'internal-payment-error': new Errors.InternalPaymentError(),
}
const codes: readonly MppProblem[] = [
  'payment-required',
  'malformed-credential',
  'invalid-challenge',
  'payment-expired',
  'verification-failed',
  'payment-insufficient',
  'invalid-payload',
  'payment-action-required',
  'method-unsupported',
  'bad-request',
  'internal-payment-error',
]

test('every problem has the type, the status and the title that mppx answers', () => {
  expect(Object.keys(mppProblems)).toEqual(codes)
  for (const code of codes) {
    const { type, status, title } = official[code].toProblemDetails()
    expect({ type: mppProblemType(code), ...mppProblems[code] }).toEqual({ type, status, title })
  }
})

test('no official problem outside of sessions is missing', () => {
  const types = Object.values(Errors)
    .flatMap((made) => (typeof made === 'function' && made !== Errors.PaymentError ? [made] : []))
    .map((made) => String(Reflect.get(Reflect.construct(made, []), 'type')))
  expect(types.length).toBeGreaterThan(10)
  expect(types.filter((type) => !type.includes('/session/')).sort()).toEqual(codes.map(mppProblemType).sort())
})
