import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'

export const sessionsRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/sessions',
    component: lazyRouteComponent(() => import('./sessions-page.tsx'), 'SessionsPage'),
  }),
] as const
