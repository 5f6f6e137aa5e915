import { defineErrors } from '../../../platform/errors.ts'

export const failPolicy = defineErrors({
  'policy-denied': {
    status: 403,
    title: 'Policy Denied',
    detail: "The wallet's spend policy does not let this leave; rule names what refused, nothing was moved.",
  },
  'policy-loosening-denied': {
    status: 403,
    title: 'Policy Loosening Denied',
    detail:
      'An API key may only tighten a spend policy. What would be looser is named in errors; the operator loosens with purser admin.',
  },
})

/** What an operation that moves money out of a managed wallet may answer, for its table. */
export const policyErrors = { 'policy-denied': failPolicy.table['policy-denied'] }
