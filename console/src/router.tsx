import { createHashHistory, createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router'
import { Overview } from './pages/overview'
import { NotFound } from './pages/notfound'
import { Shell } from './shell'

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound })

const routes = [
  createRoute({ getParentRoute: () => root, path: '/', component: Overview }),
]

// Places are behind the # of the address, so that one page serves them all, below any path. Those of objects are the
// paths of the API.
export const router = createRouter({
  routeTree: root.addChildren(routes),
  history: createHashHistory(),
  defaultPreload: false,
  scrollRestoration: true,
})

void lazyRouteComponent

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
