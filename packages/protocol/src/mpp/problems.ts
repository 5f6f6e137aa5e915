/** The base URL of the problem types of the Payment scheme (draft-httpauth-payment-00, "Problem Types"). */
export const mppProblemBase = 'https://paymentauth.org/problems/'

/**
 * The problem types of the core specification and those that mppx 0.11 adds, with the status and title of mppx (its
 * `Errors`), which may differ from those of the draft. Without the types of `session`, which is a payment channel.
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

/** The last part of a problem type's URL. */
export type MppProblem = keyof typeof mppProblems

/**
 * The reason why a message is malformed: the problem, the position (JSON Pointer), and a sentence that contains no text
 * of the message.
 */
export type MppFault = { readonly reason: MppProblem; readonly path: string; readonly message: string }

/** The result of an MPP parser, which never throws. */
export type MppParsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: MppFault }

/**
 * Returns the URL of a problem type, the `type` in an `application/problem+json` body.
 *
 * @example
 * mppProblemType('payment-required') // 'https://paymentauth.org/problems/payment-required'
 */
export function mppProblemType(code: MppProblem): string {
  return `${mppProblemBase}${code}`
}
