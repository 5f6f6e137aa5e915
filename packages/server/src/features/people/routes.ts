import type { Operation } from '../../platform/operation.ts'
import { PageQuery } from '../../platform/wire.ts'
import { failOrganisation } from '../organisations/index.ts'
import { fail } from './errors.ts'
import { type Deps, operation } from './ports.ts'
import { SessionParams, SignInSession } from './schema.ts'
import { endSession, pageOfSessions } from './sessions.ts'

const refusals = { ...fail.table, 'person-required': failOrganisation.table['person-required'] }

export const peopleOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'account.sessions.list',
    needs: { role: 'person', scope: 'read' },
    method: 'GET',
    path: '/account/sessions',
    summary: 'List the sessions in which you are signed in, newest first.',
    description: 'For people who are signed in to the dashboard; API keys have no sessions.',
    query: PageQuery,
    output: SignInSession,
    list: true,
    errors: { 'person-required': refusals['person-required'] },
    run: (ctx, { query }) => pageOfSessions(ctx, query),
  }),
  operation({
    id: 'account.sessions.end',
    needs: { role: 'person', scope: 'organisation' },
    method: 'DELETE',
    path: '/account/sessions/{id}',
    summary: 'End one of your sessions at once.',
    description: 'For people who are signed in to the dashboard; API keys have no sessions.',
    params: SessionParams,
    errors: { 'person-required': refusals['person-required'], 'session-not-found': refusals['session-not-found'] },
    run: (ctx, { params }) => endSession(ctx, params.id),
  }),
]
