import type { Operation } from '../../platform/operation.ts'
import { PageQuery } from '../../platform/wire.ts'
import { buyingErrors } from '../payments/index.ts'
import { planErrors } from '../plans/index.ts'
import { tenantSemaphores } from '../vaults/index.ts'
import { type Deps, operation } from './ports.ts'
import { NewSession, OpenedSession, Session, SessionParams, VerifySession } from './schema.ts'
import { fail, failToken, getSession, openSession, pageOfSessions, verifySession } from './sessions.ts'

export const sessionOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'sessions.create',
    needs: { role: 'member', scope: 'payments' },
    whileSuspended: true,
    method: 'POST',
    path: '/sessions',
    summary: 'Open the session of a payment, with its vault.',
    description:
      'A payment has one session: a repeated request returns 200 and a new sessionToken, and the previous token is no longer valid.',
    input: NewSession,
    output: OpenedSession,
    otherOutputs: { 200: OpenedSession },
    status: 201,
    errors: { ...buyingErrors, 'vault-quota-exceeded': planErrors['vault-quota-exceeded'] },
    secretResponse: true,
    semaphores: tenantSemaphores,
    run: (ctx, { body }) => openSession(ctx, body),
  }),
  operation({
    id: 'sessions.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/sessions',
    summary: 'List sessions, newest first.',
    description: 'Expired sessions are listed too. Their tokens are never shown.',
    query: PageQuery,
    output: Session,
    list: true,
    run: (ctx, { query }) => pageOfSessions(ctx, query),
  }),
  operation({
    id: 'sessions.get',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/sessions/{sessionId}',
    summary: 'Get one session.',
    description: '`isExpired`: it grants no access any more.',
    params: SessionParams,
    output: Session,
    errors: fail.table,
    run: (ctx, { params }) => getSession(ctx, params.sessionId),
  }),
  operation({
    id: 'sessions.verify',
    needs: { role: 'member', scope: 'payments' },
    whileSuspended: true,
    method: 'POST',
    path: '/sessions/verify',
    summary: 'Check whether a session token grants access to a route.',
    description:
      'The middlewares of the SDK call it before they serve a route. If the token is not valid for the host and the wallet, it is 402 `session-not-found`: request a payment.',
    input: VerifySession,
    output: Session,
    errors: failToken.table,
    run: (ctx, { body }) => verifySession(ctx, body),
  }),
]
