import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'

export const teamRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/team',
    component: lazyRouteComponent(() => import('./team-page.tsx'), 'TeamPage'),
  }),
] as const
