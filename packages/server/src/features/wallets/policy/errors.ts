import { defineErrors } from '../../../platform/errors.ts'

export const failPolicy = defineErrors({
  'policy-denied': {
    status: 403,
    title: 'Policy Denied',
    detail: "The wallet's spend policy refuses this movement; see rule. Nothing was moved.",
  },
  'policy-loosening-denied': {
    status: 403,
    title: 'Policy Loosening Denied',
    detail:
      'An API key may only tighten a spend policy. errors lists what would be looser; the operator loosens it with purser admin.',
  },
})

/** Errors of an operation that moves money out of a managed wallet, for its table. */
export const policyErrors = { 'policy-denied': failPolicy.table['policy-denied'] }
