import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { noteFailedRead } from './api/read-errors.ts'
import { base, environmentOf, inEnvironment, lastEnvironment, rememberEnvironment } from './api/scope.ts'
import { App } from './app.tsx'
import './styles.css'

const container = document.getElementById('root')
if (container === null) throw new Error('index.html has no root')
const root = createRoot(container)

/** A function, because the imported pages import this module: a top-level `await` would deadlock. */
async function start(): Promise<void> {
  if (location.pathname === `${base}/sign-in`) {
    const { SignInPage } = await import('./sign-in/sign-in-page.tsx')
    root.render(
      <StrictMode>
        <SignInPage />
      </StrictMode>,
    )
  } else if (location.pathname === `${base}/choose-password`) {
    const { ChoosePasswordPage } = await import('./sign-in/choose-password-page.tsx')
    const token = new URLSearchParams(location.search).get('token') ?? undefined
    history.replaceState(null, '', location.pathname)
    root.render(
      <StrictMode>
        <ChoosePasswordPage token={token} />
      </StrictMode>,
    )
  } else {
    const environment = environmentOf(location.pathname) ?? lastEnvironment()
    if (environmentOf(location.pathname) === undefined)
      history.replaceState(null, '', inEnvironment(environment, location))
    rememberEnvironment(environment)
    document.documentElement.dataset.environment = environment
    const queries = new QueryClient({
      queryCache: new QueryCache({ onError: noteFailedRead }),
      defaultOptions: { queries: { staleTime: 15_000, retry: false, refetchOnWindowFocus: true, throwOnError: false } },
    })
    root.render(
      <StrictMode>
        <QueryClientProvider client={queries}>
          <App environment={environment} />
        </QueryClientProvider>
      </StrictMode>,
    )
  }
}

void start()
