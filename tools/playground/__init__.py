"""The site that runs the simulator in a browser tab: CPython as WebAssembly, the unmodified packages, one page.

    python/     what the page calls in Python, and stand-ins for packages that a browser lacks
    site/       the page: modules of JavaScript without a framework; those of `broker_sim/page` draw clusters and wheels
    __main__    `make playground` puts all of it into out/playground, static files for any web server below any path
    serve       the same files on loopback

It is a tool and no part of a wheel, because a wheel is what the site has inside.
"""
