import { CSPProvider } from '@base-ui/react/csp-provider'
import { type Account, AuthenticationError, type Chain, type Environment, PermissionDeniedError } from '@purser/sdk'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { Building2, FlaskConical } from 'lucide-react'
import { type ReactNode, useEffect, useMemo } from 'react'
import { ChainsContext, chainsQuery } from './api/chains.ts'
import { sessionClient, usePurser, useWorkspace, type Workspace, WorkspaceContext } from './api/context.ts'
import { lastOrganisation, rememberOrganisation, signInAgain } from './api/scope.ts'
import { LiveEvents } from './live/live-events.ts'
import { Invitations } from './pages/account/invitations.tsx'
import { NewOrganisation, newOrganisation } from './pages/account/new-organisation.tsx'
import { createDashboardRouter } from './router.ts'
import { switchEnvironment } from './shell/scope-switch.tsx'
import { Button } from './ui/button.tsx'
import { ErrorBlock } from './ui/error-block.tsx'
import { Empty, Skeleton } from './ui/page.tsx'
import { Toasts } from './ui/toast.tsx'

/** Finds out who is signed in, then shows the page. Redirects to the sign-in page and back if nobody is signed in. */
export function App({ environment }: { environment: Environment }) {
  const queries = useQueryClient()
  // A person without one who has just created an organisation sees its first key: the page stays until they leave it.
  const mayReplacePage = ({ state: { data } }: { readonly state: { readonly data: Account | undefined } }) =>
    data === undefined ||
    data.organisations.length > 0 ||
    queries.getMutationCache().find({ mutationKey: newOrganisation }) === undefined
  const account = useQuery({
    queryKey: ['account'],
    queryFn: ({ signal }) => sessionClient(undefined, undefined).account.get({ signal }),
    staleTime: 60_000,
    refetchOnWindowFocus: mayReplacePage,
    refetchOnReconnect: mayReplacePage,
  })
  const isSignedOut = account.error instanceof AuthenticationError && account.error.status === 401
  useEffect(() => {
    if (isSignedOut) location.replace(signInAgain())
  }, [isSignedOut])
  const organisation =
    account.data?.organisations.find(({ id }) => id === lastOrganisation()) ?? account.data?.organisations[0]
  const organisationId = organisation?.id
  const live = useMemo(() => {
    if (organisationId === undefined) return undefined
    rememberOrganisation(organisationId)
    const purser = sessionClient(organisationId, environment)
    return { purser, live: new LiveEvents(purser), router: createDashboardRouter(environment) }
  }, [organisationId, environment])
  useEffect(() => () => live?.live.close(), [live])
  if (account.error !== null && !isSignedOut)
    return (
      <main className="mx-auto max-w-140 p-6">
        <ErrorBlock error={account.error} onRetry={() => account.refetch()} />
      </main>
    )
  if (account.data === undefined || isSignedOut) return <Skeleton lines={6} className="mx-auto max-w-140 p-10" />
  if (organisation === undefined || live === undefined) return <NoOrganisation account={account.data} />
  const workspace: Workspace = { ...live, account: account.data, organisation, environment }
  return (
    <CSPProvider disableStyleElements>
      <WorkspaceContext value={workspace}>
        <Chains>
          <Toasts>
            <RouterProvider router={live.router} />
          </Toasts>
        </Chains>
      </WorkspaceContext>
    </CSPProvider>
  )
}

/**
 * Loads the chains once: their explorers change only with a deployment. A person who may not read them in live works in
 * the test environment.
 */
function Chains({ children }: { children: ReactNode }) {
  const { data, error } = useQuery({ ...chainsQuery(usePurser()), staleTime: Number.POSITIVE_INFINITY })
  const { environment } = useWorkspace()
  if (environment === 'live' && error instanceof PermissionDeniedError) return <TestOnly error={error} />
  return <ChainsContext value={data ?? noChains}>{children}</ChainsContext>
}

/** The page for a person who works in the test environment only. */
function TestOnly({ error }: { error: PermissionDeniedError }) {
  return (
    <main className="mx-auto max-w-155 p-4 pt-16">
      <Empty
        icon={<FlaskConical />}
        heading="h1"
        title="You work in the test environment"
        action={
          <Button tone="primary" onClick={() => switchEnvironment('test')}>
            Go to the test environment
          </Button>
        }
      >
        {error.message}
      </Empty>
    </main>
  )
}

const noChains: readonly Chain[] = []

/** The page for a person without an organisation. */
function NoOrganisation({ account: { email, invitations } }: { account: Account }) {
  return (
    <CSPProvider disableStyleElements>
      <Toasts>
        <main className="mx-auto flex max-w-155 flex-col gap-4 p-4 pt-16">
          <Empty icon={<Building2 />} heading="h1" title="You are not a member of any organisation">
            {invitations.length > 0
              ? `Accept an invitation for ${email}.`
              : `Ask an owner to invite ${email}: the invitation appears here. Or create an organisation of your own.`}
          </Empty>
          <Invitations invitations={invitations} />
          <NewOrganisation />
        </main>
      </Toasts>
    </CSPProvider>
  )
}
