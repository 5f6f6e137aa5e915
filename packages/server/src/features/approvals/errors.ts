import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'approval-not-found': { status: 404, title: 'Approval Not Found', detail: 'No such approval.' },
  'approval-not-waiting': {
    status: 409,
    title: 'Approval Not Waiting',
    detail: 'The approval has been decided, or it has expired; see approvalStatus.',
  },
  'approval-needs-person': {
    status: 403,
    title: 'Approval Needs a Person',
    detail: 'An API key cannot approve or refuse. An owner or admin who is signed in does it.',
  },
  'approval-own-request': {
    status: 403,
    title: 'Own Request',
    detail: 'You, or an API key that you created, made this request. Another owner or admin must approve it.',
  },
  'approval-requester-not-allowed': {
    status: 409,
    title: 'Requester Not Allowed',
    detail:
      'The API key that made the request was revoked, or the person who made it is no longer a member or may only read. Refuse the request. A person or key that may move the money can make a new one.',
  },
  'approval-not-yours': {
    status: 403,
    title: 'Not Your Request',
    detail: 'Only the API key or the person that made the request cancels it, or the person who created that key.',
  },
  'too-many-open-approvals': {
    status: 429,
    title: 'Too Many Open Approvals',
    detail:
      'The wallet has 20 requests that wait for an approval. Wait until some are decided, or cancel one. Nothing was moved.',
  },
})

/** Errors of an operation that may need an approval, for its table. */
export const approvalErrors = { 'too-many-open-approvals': fail.table['too-many-open-approvals'] }
