/** Where the problem types of the Payment scheme live (draft-httpauth-payment-00, "Problem Types"). */
export const mppProblemBase = 'https://paymentauth.org/problems/'

/**
 * The problem types of the core specification and those that mppx 0.11 adds to them, each with the status and the title that
 * mppx answers (its `Errors`). Where the draft has another status or title, the code wins. The types of `session`, which is a
 * payment channel, are not here.
 */
export const mppProblems = {
  'payment-required': { status: 402, title: 'Payment Required' },
  'malformed-credential': { status: 402, title: 'Malformed Credential' },
  'invalid-challenge': { status: 402, title: 'Invalid Challenge' },
  'payment-expired': { status: 402, title: 'Payment Expired' },
  'verification-failed': { status: 402, title: 'Verification Failed' },
  'payment-insufficient': { status: 402, title: 'Payment Insufficient' },
  'invalid-payload': { status: 402, title: 'Invalid Payload' },
  'payment-action-required': { status: 402, title: 'Payment Action Required' },
  'method-unsupported': { status: 400, title: 'Method Unsupported' },
  'bad-request': { status: 400, title: 'Bad Request' },
  'internal-payment-error': { status: 500, title: 'Internal Payment Error' },
} as const

/** The last part of a problem type's address. */
export type MppProblem = keyof typeof mppProblems

/** Why a message is not one: the problem, where (JSON Pointer), and a sentence without any of the sender's text. */
export type MppFault = { readonly reason: MppProblem; readonly path: string; readonly message: string }

/** The result of an MPP parser, which never throws. */
export type MppParsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: MppFault }

/**
 * The address that is a problem's `type` in an `application/problem+json` body.
 *
 * @example
 * mppProblemType('payment-required') // 'https://paymentauth.org/problems/payment-required'
 */
export function mppProblemType(code: MppProblem): string {
  return `${mppProblemBase}${code}`
}
