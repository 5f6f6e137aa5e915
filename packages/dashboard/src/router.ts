import type { Environment } from '@purser/sdk'
import { createRouter } from '@tanstack/react-router'
import { base } from './api/scope.ts'
import { pageRoutes } from './pages/routes.ts'
import { rootRoute, shellRoute } from './shell/root-route.ts'

const routeTree = rootRoute.addChildren([shellRoute.addChildren(pageRoutes)])

/** The router of one environment: the environment is part of every address. */
export function createDashboardRouter(environment: Environment) {
  return createRouter({
    routeTree,
    basepath: `${base}/${environment}`,
    defaultPreload: 'intent',
    defaultPreloadStaleTime: 0,
    scrollRestoration: true,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createDashboardRouter>
  }
}
