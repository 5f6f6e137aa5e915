import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'organisation-not-found': { status: 404, title: 'Organisation Not Found', detail: 'No such organisation.' },
  'invitation-not-found': { status: 404, title: 'Invitation Not Found', detail: 'No such invitation of this account.' },
  'organisation-limit-reached': {
    status: 409,
    title: 'Organisation Limit Reached',
    detail: 'An account has at most 10 organisations.',
  },
  'member-not-found': { status: 404, title: 'Member Not Found', detail: 'No such member of this organisation.' },
  'already-a-member': {
    status: 409,
    title: 'Already A Member',
    detail: 'The account is a member of this organisation already.',
  },
  'last-owner': {
    status: 409,
    title: 'Last Owner',
    detail: 'The organisation would be left without an owner. Make somebody else an owner first.',
  },
  'api-key-not-found': { status: 404, title: 'API Key Not Found', detail: 'No such API key.' },
  'environment-not-allowed': {
    status: 403,
    title: 'Environment Not Allowed',
    detail:
      'A key makes keys of its own environment. The operator or an owner in the dashboard makes the first live key.',
  },
  'key-not-narrower': {
    status: 403,
    title: 'Key Not Narrower',
    detail: 'A key makes only keys with its own scopes and end, or narrower.',
  },
  'api-key-limit-reached': {
    status: 409,
    title: 'API Key Limit Reached',
    detail: 'An organisation has at most 50 valid keys in an environment. Revoke one that is not used.',
  },
})
